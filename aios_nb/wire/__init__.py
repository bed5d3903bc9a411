"""How programs reach a node, and how it reaches programs of others.

``methods`` is the table of what may be called by whom, ``dispatch`` calls it, ``guard`` decides who
is calling, ``server`` is the one HTTP port: JSON-RPC over HTTP, websocket and SSE. Behind it
``lobby`` has the doors for other protocols: ``mcp``, ``a2a``, ``catalogs``. ``peer`` is the way to
other nodes, ``outside`` the one to programs of others. Nothing here holds state of the business.
"""
