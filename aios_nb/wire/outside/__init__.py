"""Programs of others: what answers at a URL or behind a command, met, looked at and asked.

::

    meeting.py      what answers there: A2A, MCP or nothing we know
    a2a.py          an A2A agent: its card (cards, signatures), how it is asked (rpc), what becomes
                    of a task (journeys, events, parts)
    mcp.py          an MCP server: the way to it (ways: pinned, stdio), its sessions (sessions,
                    session, problems, tempo), its tools and how they are called (tools, toolcalls,
                    values), what it asks back (forms) and answers (results)
    catalogs.py     lists of such programs

All that they say is data: bounded, cleaned, never believed.
"""

from aios_nb.wire.outside.meeting import Outsiders

__all__ = ["Outsiders"]
