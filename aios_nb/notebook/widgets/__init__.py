"""AgentHub, AgentChat and the network as widgets: a Python class, a ``.js`` and a ``.css`` each."""
