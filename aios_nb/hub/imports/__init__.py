"""Programs of others as agents of this node: MCP servers and A2A agents their owner brought in."""

from aios_nb.hub.imports.desk import ImportDesk
from aios_nb.hub.imports.imports import Imports

__all__ = ["ImportDesk", "Imports"]
