"""Finding texts by words and by meaning. For the hub and for agents that search texts."""
