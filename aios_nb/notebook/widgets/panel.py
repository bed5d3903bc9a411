"""What the widgets share: messages both ways, few and in order, off the kernel's main thread.

A panel lives on two threads. The kernel makes it and hands over what the page says; all else
happens on the node's loop, where ``receive`` runs and ``tell`` and ``stir`` may be called. What is
told within ``PAUSE_S`` goes out as one message: ``{"type": "batch", "n": …, "messages": [...]}``.
Batches are numbered: a page that misses one says hello again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

import anywidget
import traitlets

from aios_nb.errors import AiosError, NotRunning
from aios_nb.notebook.kernel import cell_now, unbound
from aios_nb.notebook.widgets.audience import Audience
from aios_nb.people.wording import NOTEBOOK, typed
from aios_nb.site import Site

log = logging.getLogger("aios_nb.notebook")

PAUSE_S = 0.05
"""Between two messages to the page: 20 a second. The server drops what exceeds 1000 a second."""
_HERE = Path(__file__).parent
_AWAKE: WeakSet[Panel] = WeakSet()
"""All panels that were shown under a cell, and do not rest."""
_AWAKE_LOCK = threading.Lock()
"""The kernel's shells are threads of their own."""


def cell_begins() -> None:
    """A cell is run, and the page has taken away what it showed; those panels rest."""
    cell = cell_now()
    if cell is None:
        return
    with _AWAKE_LOCK:
        awake = tuple(_AWAKE)
    for panel in awake:
        if panel.audience.cleared(cell):
            panel.rest()


def asset(*names: str) -> str:
    """The text of these files, one after the other."""
    return "\n".join((_HERE / name).read_text("utf-8") for name in names)


class Host(Protocol):
    """Where a panel finds the node: now, and after it was stopped and started again."""

    def site(self) -> Site | None:
        """The running node; None while there is none."""

    def problem(self) -> str:
        """Why there is none, in one line: ``starting``, ``stopped``, or what went wrong."""

    def subscribe(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call ``told`` (on any thread) when ``site()`` has changed; the result ends that."""


class Panel(anywidget.AnyWidget):
    """A widget of ours. Subclasses say what the page may send, and tell it what to show."""

    _esm = asset("common.js")
    _css = asset("common.css")

    line = traitlets.Unicode().tag(sync=True)
    """Which panel this is: all views of it in a page share one line to Python."""
    saved = traitlets.Dict().tag(sync=True)
    """What a page shows that cannot ask: after a reload beside a busy cell, or without a kernel."""
    resting = traitlets.Bool().tag(sync=True)
    """Nobody sees it, for all one knows; what was typed into it may be taken over by another."""

    closed = True
    """Until it is made, and for good after its end."""
    aside = frozenset({"bye"})
    """What a page says by itself; a view that is being taken away may still say it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._queue: list[dict[str, Any]] = []
        self._buffers: list[bytes] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Of the node that was there last; a node that is started again has another one."""
        self._flushed_at = 0.0
        self._sending = threading.Lock()
        self._sent = 0
        self._works: set[asyncio.Task[Any]] = set()
        """What ends when it rests."""
        self._deeds: set[asyncio.Task[Any]] = set()
        """What somebody asked for: it is done, whoever looks on."""
        self._leave: Callable[[], None] = lambda: None
        self.audience = Audience()
        self.closed = False
        self.inside = False
        """Shown in another panel, which says when it rests."""
        self._switching = threading.RLock()
        unbound(lambda: super(Panel, self).__init__(line=secrets.token_hex(8)))
        self.on_msg(self._heard)
        self._leave = host.subscribe(self._host_changed)

    def there(self) -> Site:
        """The running node; raises ``NotRunning`` where there is none."""
        site = self.host.site()
        if site is None:
            raise NotRunning(f"the node is not running: {self.host.problem()}", hint="%aios up")
        return site

    def begin(self) -> None:
        """At the end of a constructor: ``attached`` follows if the node is up."""
        if self.host.site() is not None:
            self._host_changed()

    # For subclasses, on the node's loop --------------------------------------------------------

    async def receive(self, message: dict[str, Any], buffers: Sequence[bytes]) -> None:
        """What the page sent. ``{"type": "hello"}`` comes first from every page that opens."""
        raise NotImplementedError

    async def attached(self, site: Site) -> None:
        """The node is there, for the first time or again."""

    def detached(self, problem: str) -> None:
        """The node is gone; called on any thread. Tells the page by default."""
        self.tell_now({"type": "offline", "problem": problem})

    def pour(self) -> Iterable[dict[str, Any]]:
        """What has changed since it was last asked, as messages; asked for after ``stir``.

        For what changes faster than a page can show it: a hundred changes cost one message.
        """
        return ()

    def stir(self) -> None:
        """Something has changed: let ``pour`` tell of it, soon."""
        loop = asyncio.get_running_loop()
        if self._flushing is None or self._loop is not loop:
            if self._loop is not loop:
                self._loop, self._flushed_at = loop, 0.0
            self._flushing = loop.call_at(self._flushed_at + PAUSE_S, self._flush)

    def tell(self, message: dict[str, Any], *buffers: bytes) -> None:
        """Tell the page soon, together with what else comes meanwhile.

        ``buffers`` go along; the message gets ``buffers: [first, count]`` to find them.
        """
        if buffers:
            message = {**message, "buffers": [len(self._buffers), len(buffers)]}
            self._buffers += buffers
        self._queue.append(message)
        self.stir()

    def tell_now(self, message: dict[str, Any]) -> None:
        """The same at once, from any thread."""
        self._publish([message])

    def work(self, job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run it on the node's loop beside all else; a failure is told to the page."""
        return self._begin(job, self._works)

    def _begin(
        self, job: Coroutine[Any, Any, Any], among: set[asyncio.Task[Any]]
    ) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(self._guarded(job))
        among.add(task)
        task.add_done_callback(among.discard)
        task.add_done_callback(lambda _: job.close())  # cancelled before its first step
        return task

    # Where it is shown -------------------------------------------------------------------------

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        self.shown()
        return self.widget_bundle(**kwargs)

    def widget_bundle(self, **kwargs: Any) -> Any:
        """The widget for a page that is shown it, now or again."""
        return super()._repr_mimebundle_(**kwargs)

    def shown(self) -> None:
        """It is displayed under the cell that runs."""
        self.wake()
        cell = cell_now()
        if cell is not None:
            self.audience.shown(cell)
            with _AWAKE_LOCK:
                _AWAKE.add(self)

    def rest(self) -> None:
        """Nobody sees it any more, and nothing is sent. It goes on when it is shown again."""
        with self._switching:
            if self.resting:
                return
            try:
                self._rests(now=True)
            finally:  # whatever becomes of telling it
                self._stop()
                self.rested()

    def rested(self) -> None:
        """For subclasses: nothing is followed any more. On any thread."""
        self.detached("resting")

    def wake(self) -> None:
        """Somebody looks again."""
        with self._switching:
            if self.resting and not self.closed:
                self._rests(now=False)
                self._leave = self.host.subscribe(self._host_changed)
                if not self.inside:
                    with _AWAKE_LOCK:
                        _AWAKE.add(self)
                self._host_changed()

    def _rests(self, *, now: bool) -> None:
        unbound(lambda: self.set_trait("resting", now))

    # Plumbing ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop listening, and leave the page, for good. A second call does nothing.

        The garbage collector makes one, wherever it is at work: it must not wait for a lock.
        """
        if self.closed:
            return
        with self._switching:
            self.closed = True  # what was handed to the node's loop before is not begun there
            self._stop()
        super().close()
        self.ended()

    def ended(self) -> None:
        """For subclasses: it is closed. Called once, on any thread."""

    def _stop(self) -> None:
        with _AWAKE_LOCK:
            _AWAKE.discard(self)
        leave, self._leave = self._leave, lambda: None
        leave()
        for task in tuple(self._works):
            try:
                task.get_loop().call_soon_threadsafe(task.cancel)
            except RuntimeError:  # its node was stopped, and took its tasks along
                continue

    def _heard(self, _: Any, content: Any, buffers: Any) -> None:
        """On the kernel's thread, or one of its shells'."""
        if not isinstance(content, dict):
            return
        kind, view = content.get("type"), str(content.get("view") or "")
        if kind == "hello":
            self.audience.came(view)
        if kind not in self.aside:
            self.wake()
        elif kind == "bye" and self.audience.left(view):
            self.rest()
        if self.resting:
            return
        held = [bytes(one) for one in buffers or ()]
        site = self.host.site()
        if site is None:
            unheard = {name: content[name] for name in ("id", "nr") if name in content}
            self.tell_now({"type": "offline", "problem": self.host.problem(), **unheard})
            return
        self._hand_over(site, lambda: self._received(content, held), self._deeds)

    def _hand_over(
        self,
        site: Site,
        make: Callable[[], Coroutine[Any, Any, Any]],
        among: set[asyncio.Task[Any]] | None = None,
    ) -> None:
        def begin() -> None:
            self._begin(make(), self._works if among is None else among)

        try:
            unbound(lambda: site.loop.loop.call_soon_threadsafe(begin))
        except (AiosError, RuntimeError):  # stopped between two lines
            self.tell_now({"type": "offline", "problem": self.host.problem()})

    async def _received(self, content: dict[str, Any], buffers: Sequence[bytes]) -> None:
        if self.closed or (self.resting and content.get("type") in {"hello", *self.aside}):
            return  # since it was handed over
        if "nr" in content:
            self.tell({"type": "ack", "nr": content["nr"]})
        await self.receive(content, buffers)

    def _host_changed(self) -> None:
        site = self.host.site()
        if site is None:
            self.detached(self.host.problem())
        else:
            self._hand_over(site, lambda: self._attached(site))

    async def _attached(self, site: Site) -> None:
        if not (self.resting or self.closed):
            await self.attached(site)

    async def _guarded(self, job: Coroutine[Any, Any, Any]) -> None:
        try:
            await job
        except Exception as error:  # noqa: BLE001 - what is no word of ours is logged
            self.tell(_said(error))

    def _flush(self) -> None:
        self._flushing = None
        self._flushed_at = asyncio.get_running_loop().time()
        queue, self._queue = self._queue, []
        buffers, self._buffers = self._buffers, []
        messages = queue
        try:
            messages += self.pour()
        except Exception as error:  # noqa: BLE001 - logged; what was told before it goes out
            messages.append(_said(error))
        if messages:
            self._publish(messages, buffers)

    def _publish(self, messages: list[dict[str, Any]], buffers: Sequence[bytes] = ()) -> None:
        if self.resting:
            return

        def send() -> None:
            with self._sending:  # a number is given out in the order of sending
                self._sent += 1
                batch = {"type": "batch", "n": self._sent, "messages": messages}
                self.send(batch, buffers=list(buffers) or None)

        unbound(send)


def _said(error: Exception) -> dict[str, Any]:
    """A failure as a page shows it. One that is a mistake of ours is in the log."""
    if isinstance(error, AiosError):
        return {"type": "error", "text": error.message, "hint": typed(error.hint or "", NOTEBOOK)}
    log.error("a widget failed", exc_info=error)
    return {"type": "error", "text": f"{type(error).__name__}: {error}", "hint": ""}
