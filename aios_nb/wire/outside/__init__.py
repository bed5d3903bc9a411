"""Programs of others: what answers at a URL or behind a command, met, looked at and asked.

::

    meeting.py      what answers there: A2A, MCP or nothing we know
    a2a.py          an A2A agent: its card (cards.py, signatures.py), its tasks (journeys.py)
    mcp.py          an MCP server: its tools
    catalogs.py     lists of such programs

All that they say is data: bounded, cleaned, never believed.
"""

from aios_nb.wire.outside.meeting import Outsiders

__all__ = ["Outsiders"]
