"""A chat app in memory, for the core's tests: people who write, press and search; faults on demand.

It is as strict as a real app about what can be shown, and knows nothing of any. A test plays the
people, and looks at what each chat shows::

    app = Loopback()
    ana = app.person("5", "Ana")
    ana.says("/help")
    await app.until(lambda: app.texts("5") == ["/help", "You can …"])
    app.fail(Flooded(30), chat="5")         # what the next call there gets
    app.fail(Unsure("reset"), after=True)   # done all the same
    with app.held(chat="5") as held:        # a call that hangs until the end of the block
        await held.reached.wait()
"""

from aios_bots.adapters.loopback.app import Loopback, Made
from aios_bots.adapters.loopback.people import Group, Message, Person

__all__ = ["Group", "Loopback", "Made", "Message", "Person"]
