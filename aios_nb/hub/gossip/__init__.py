"""Who is there and who offers what, spread from node to node. A state machine without I/O."""

from aios_nb.hub.gossip.instructions import Changed, Instruction, Pull, Send, Superseded
from aios_nb.hub.gossip.machine import Gossip
from aios_nb.hub.gossip.members import LIVING, Life, Member
from aios_nb.hub.gossip.pace import LAN, LOCAL, WAN, Pace
from aios_nb.hub.gossip.packets import PACKET_LIMIT_BYTES, still_there
from aios_nb.hub.gossip.ports import Records

__all__ = [
    "LAN",
    "LIVING",
    "LOCAL",
    "PACKET_LIMIT_BYTES",
    "WAN",
    "Changed",
    "Gossip",
    "Instruction",
    "Life",
    "Member",
    "Pace",
    "Pull",
    "Records",
    "Send",
    "Superseded",
    "still_there",
]
