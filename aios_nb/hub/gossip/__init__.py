"""Who is there and who offers what, spread from node to node. A state machine without I/O."""
