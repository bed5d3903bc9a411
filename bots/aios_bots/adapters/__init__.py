"""Chat apps, one module for each."""
