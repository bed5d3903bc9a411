"""MCP by lines: what a client writes goes to the node's ``/mcp``, what comes back is written.

The relay knows how messages travel and nothing of what they mean: both eras, and the choice between
them, are between the client and the node.
"""
