"""MCP: the agents of this node as tools, resources and prompts, by the protocol's own SDK.

``door`` is what the server knows; the rest is loaded when the first MCP client comes, because the
SDK takes about a second to load.
"""
