"""A2A 1.0 over JSON-RPC: every agent that a caller may call has a card and an endpoint.

Tasks are a view of our own log; contexts are conversations. Nothing is stored here.
"""
