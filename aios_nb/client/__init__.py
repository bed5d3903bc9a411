"""Talking to a node: one interface, in its own process or over ``/ws``.

``LocalClient`` calls the node of this process, on its loop. ``RemoteClient`` calls a node over a
websocket: it makes the node prove its key before it gives the token, shares one connection between
all calls, and comes back after the connection broke. Both give the same shapes.
"""

from aios_nb.client.files import get_file, put_file
from aios_nb.client.history import pages
from aios_nb.client.interface import Flow, SiteClient
from aios_nb.client.local import LocalClient
from aios_nb.client.remote import RemoteClient

__all__ = [
    "Flow", "LocalClient", "RemoteClient", "SiteClient", "get_file", "pages", "put_file",
]  # fmt: skip
