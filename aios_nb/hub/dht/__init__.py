"""Where a node is, kept by its neighbours in key space: Kademlia, on the package of that name."""
