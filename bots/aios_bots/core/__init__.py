"""What every chat app has in common; knows none of them by name."""
