"""A Bot API server for tests: as strict as the real one, on loopback, with faults on demand.

``with BotApi() as api:`` runs it in a thread of its own; ``api.bot`` has the token,
``api.base_url`` is what client libraries ask for, ``api.person("Ada")`` is somebody with a phone.
It knows nothing of the bridge and nothing of a client library: what it does is what Telegram
documents, and where the documents are silent, what people report. Written against Bot API 10.3.

A person acts: ``ada.says("hi")``, ``starts("code")``, ``presses(message, "Yes")``, ``edits``,
``reacts``, ``searches("words")``, ``sends("photo", data)``, ``blocks()``; a place for several is
``api.group(ada, api.bot)``. Things go wrong on demand: ``api.faults.cut("sendMessage")``,
``.answer("setMyCommands", 404, times=None)``, ``.hold(…)`` for the moment to kill a process,
``api.flood.close(chat_id, 5)``, ``api.outage()``, ``api.inject({…})``, ``api.clock.skip(60)``.
``api.wait(lambda: …)`` waits for what follows; ``api.record`` has every call and what was seen.
"""

from tests.telegram.botapi.accounts import Bot, User
from tests.telegram.botapi.chats import Chat, Topic
from tests.telegram.botapi.flood import Limits
from tests.telegram.botapi.messages import Message
from tests.telegram.botapi.people import Person
from tests.telegram.botapi.server import BotApi
from tests.telegram.botapi.settings import Settings

__all__ = [
    "Bot",
    "BotApi",
    "Chat",
    "Limits",
    "Message",
    "Person",
    "Settings",
    "Topic",
    "User",
]
