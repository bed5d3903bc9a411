"""Conversations: the log, the exchange, what was said."""
