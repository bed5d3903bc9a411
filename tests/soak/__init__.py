"""``python -m tests.soak``: a bridge kept busy for hours, and whether it stays as small as it was.

A real node, a real bridge, and the strict Bot API server with Telegram's limits in force, all on
loopback. It ends by itself, and fails if anything was lost, late, refused, or grew.
"""
