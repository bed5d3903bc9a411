"""The chat bridge: people talk to the agents of a node from a chat app."""
