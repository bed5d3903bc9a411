"""What people do from a chat app: the desk where every update of theirs is dealt with."""

from aios_bots.core.desk.desk import GREETED, Desk
from aios_bots.core.desk.entry import WRONG

__all__ = ["GREETED", "WRONG", "Desk"]
