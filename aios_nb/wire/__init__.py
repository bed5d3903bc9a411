"""How programs reach a node: JSON-RPC over HTTP, websocket and SSE, behind one guard.

``methods`` is the table of what may be called by whom, ``dispatch`` calls it, ``guard`` decides who
is calling, ``server`` is the one HTTP port. Nothing here holds state of the business.
"""
