"""The public MCP suite and the MCP Inspector against a real node, with one scoreboard.

``make conformance`` runs it; ``python -m conformance --only inspector`` runs a part.
"""
