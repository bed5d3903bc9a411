"""What people do from a chat app: the desk where every update of theirs is dealt with."""

from aios_bots.core.desk.desk import Desk

__all__ = ["Desk"]
