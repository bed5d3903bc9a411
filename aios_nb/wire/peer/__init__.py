"""Links between nodes: one encrypted websocket for each pair, with many calls at once both ways."""
