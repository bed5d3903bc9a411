"""Finding agents: everything this node knows about what is out there."""
