"""Where each node is drawn, and the picture of it all for saved notebooks. No I/O.

This node is in the middle, those it has a link to are around it, then come the others by how far
away they are. Only what this node knows itself is drawn: nothing between others. Places are in the
unit disk; whoever draws stretches it. A node keeps its place while it is there.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aios_nb.addresses import scope_of
from aios_nb.people.layout import size
from aios_nb.people.naming import NODE_SHOWN
from aios_nb.records import Scope
from aios_nb.richtext import one_line

Row = Mapping[str, Any]
"""As ``node.peers`` has it."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""

SHOWN_MAX = 300
"""Nodes that are drawn; the nearest of more."""
ZONES = ("linked", "this machine", "local network", "internet", "no address")
WORDS = {"alive": "alive", "suspect": "not answering", "dead": "gone", "left": "gone"}
"""A node's state for people."""
_ORDER = {"alive": 0, "suspect": 1, "dead": 2, "left": 2}
_ROOMS = (6, 10, 16, 24, 36, 54, 80, 120, 180, 240, SHOWN_MAX)
"""Places in a zone: more are made in steps, so that few newcomers move anybody."""
_CENTRE = 0.2
"""The radius that is this node's own."""
_LINKED_WEIGHT = 1.5
"""A place near the middle is wider than others: lines and names are there."""
_GOLDEN = math.pi * (3 - math.sqrt(5))
"""Between two places one after the other: however many there are, they lie apart."""


class Ring(NamedTuple):
    """A zone in which somebody is: what it is called, and where it ends."""

    label: str
    radius: float


# Who is where ----------------------------------------------------------------------------------


def nearest(rows: Iterable[Row], most: int = SHOWN_MAX) -> list[Row]:
    """Those with a link, then the living by how fast they answer, then the rest."""
    return sorted(rows, key=_nearness)[:most]


def _nearness(row: Row) -> tuple[bool, int, float, str, str]:
    latency = row["latency_ms"]
    wait = math.inf if latency is None else latency
    return not row["link"], _ORDER.get(row["state"], 2), wait, row["name"], row["node_id"]


def zone_of(row: Row) -> int:
    """The zone it is drawn in, by number."""
    return 0 if row["link"] else _zone_of_url(row["url"])


@lru_cache(4096)
def _zone_of_url(url: str) -> int:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host:
        return 4
    scope = scope_of(host)
    return {Scope.LOOPBACK: 1, Scope.PRIVATE: 2}.get(scope, 3) if scope else 3


class Layout:
    """Gives each node a place, and keeps it there as long as it stays in its zone."""

    def __init__(self) -> None:
        self._slots: list[dict[str, int]] = [{} for _ in ZONES]
        self._rooms = [0] * len(ZONES)
        self.rings: list[Ring] = []
        """From the middle outwards."""

    def place(self, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
        """Where each of them is now; newcomers go in the order of the rows."""
        zones: list[list[str]] = [[] for _ in ZONES]
        for row in rows:
            zones[zone_of(row)].append(row["node_id"])
        for zone, present in enumerate(zones):
            self._settle(zone, present)
        places: dict[str, tuple[float, float]] = {}
        self.rings = []
        inner = _CENTRE
        for zone, outer in self._edges():
            for node_id, slot in self._slots[zone].items():
                places[node_id] = _spot(zone, slot, self._rooms[zone], inner, outer)
            self.rings.append(Ring(ZONES[zone], round(outer, 4)))
            inner = outer
        return places

    def _settle(self, zone: int, present: Sequence[str]) -> None:
        before, here = self._slots[zone], frozenset(present)
        kept = {node_id: slot for node_id, slot in before.items() if node_id in here}
        roomy = self._rooms[zone] > _ROOMS[0] and 2 * len(present) < self._rooms[zone]
        if roomy and len(present) < len(before):
            kept = {
                node_id: slot for slot, node_id in enumerate(sorted(kept, key=kept.__getitem__))
            }
        taken = frozenset(kept.values())
        free = (slot for slot in range(len(ZONES) + len(taken) + len(here)) if slot not in taken)
        for node_id in present:
            if node_id not in kept:
                kept[node_id] = next(free)
        self._slots[zone] = kept
        most = max(kept.values(), default=-1) + 1
        if most > self._rooms[zone] or 2 * most < self._rooms[zone]:
            self._rooms[zone] = next((room for room in _ROOMS if room >= most), most) * bool(most)

    def _edges(self) -> Iterator[tuple[int, float]]:
        """Each zone with somebody in it, and the radius where it ends."""
        weights = [
            room * (_LINKED_WEIGHT if zone == 0 else 1) for zone, room in enumerate(self._rooms)
        ]
        used = [(zone, weight) for zone, weight in enumerate(weights) if weight]
        whole, sofar = sum(weights), 0.0
        for count, (zone, weight) in enumerate(used, 1):
            sofar += weight
            by_room = math.sqrt(_CENTRE**2 + (1 - _CENTRE**2) * sofar / whole)
            even = _CENTRE + (1 - _CENTRE) * count / len(used)
            yield zone, (by_room + even) / 2  # by room alone, outer zones would be thin as a line


def _spot(zone: int, slot: int, room: int, inner: float, outer: float) -> tuple[float, float]:
    """Like seeds of a sunflower: each has the same room, and no two stand in a row."""
    wide = outer - inner
    # The line around a zone is drawn a little outside of it: who is beyond keeps clear of it.
    low = inner + min(0.035 if inner == _CENTRE else 0.12, wide / 3)
    high = outer - min(0.035, wide / 4)
    low, high = low**2, high**2
    # A few stand in the middle of it, clear of both its lines.
    share = 0.5 if room == _ROOMS[0] else (slot + 0.5) / room
    radius = math.sqrt(low + (high - low) * share)
    angle = slot * _GOLDEN + 2.2 * zone + 0.35
    return round(radius * math.cos(angle), 4), round(radius * math.sin(angle), 4)


# In words --------------------------------------------------------------------------------------


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """How many nodes there are with this one, and how many are in which state."""
    found = {"nodes": 1, "alive": 1, "not answering": 0, "gone": 0}
    for row in rows:
        found["nodes"] += 1
        found[WORDS.get(row["state"], "gone")] += 1
    return found


def summary(counted: Mapping[str, int], gossip: float | None = None) -> str:
    """The header: ``31 nodes · 29 alive · 1 not answering · 1 gone · 2.1 KB/s gossip``."""
    words = [f"{counted['nodes']:,} node{'s' * (counted['nodes'] != 1)}"]
    if counted["nodes"] > 1:
        words += [
            f"{counted[word]:,} {word}"
            for word in ("alive", "not answering", "gone")
            if counted[word] or word == "alive"
        ]
    if gossip is not None and counted["nodes"] > 1:
        words.append(f"{speed(gossip)} gossip")
    return " · ".join(words)


def speed(rate: float) -> str:
    """Bytes a second for people."""
    return f"{size(round(rate))}/s".replace(" bytes", " B")


def showing(total: int) -> str:
    """What is left out; empty if nothing is."""
    return "" if total <= SHOWN_MAX else f"showing {SHOWN_MAX:,} of {total:,}, the nearest"


def label_of(row: Row) -> str:
    """A node's name for people; the beginning of its id if it has none."""
    return one_line(row["name"]) or row["node_id"][:NODE_SHOWN]


def about(row: Row) -> str:
    """One line on a node: what a picture says by place, size and colour."""
    said = [label_of(row), WORDS.get(row["state"], "gone")]
    if row["link"]:
        said.append("linked")
    if row["agents"]:
        said.append(f"{row['agents']:,} agent{'s' * (row['agents'] != 1)}")
    if row["latency_ms"] is not None:
        said.append(f"{row['latency_ms']:.3g} ms")
    return " · ".join(said)


# The picture -----------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _SIDE, _TOP = 860, 340, 62, 26
_LABELS_MAX, _TRIED_MAX = 16, 40
_NAME_MAX, _NAMES_SHORT = 28, (14, 8)
"""Characters of a name; fewer where it has no room, before it is left out."""
_MANY = 120
_INK = "var(--jp-ui-font-color1,#1f2328)"
_PALE = "var(--jp-ui-font-color3,#8b929b)"
_LINE = "var(--jp-border-color2,#dcdce0)"
_PAPER = "var(--jp-layout-color1,#fff)"
_BRAND = "var(--jp-brand-color1,#1976d2)"
_FILL = {
    "alive": "var(--jp-success-color1,#2e9e5b)",
    "not answering": "var(--jp-warn-color1,#c98a00)",
    "gone": _PALE,
}
_FONT = "font-family:var(--jp-ui-font-family,system-ui,sans-serif)"


def radius_of(agents: int, nodes: int) -> float:
    """How large a node is drawn, by how many agents it offers, among so many."""
    least, most = (3.4, 7.5) if nodes > _MANY else (4.6, 11.0)
    return min(most, least + 1.3 * math.sqrt(agents))


def draw(own: str, rows: Sequence[Row], *, title: bool = True) -> str:
    """The network as SVG that needs nothing else; every text in it is escaped.

    ``own`` is the name of this node. With ``title`` it says in words what it shows.
    """
    shown = nearest(rows)
    layout = Layout()
    places = {
        node_id: (_WIDTH / 2 + x * (_WIDTH / 2 - _SIDE), _HEIGHT / 2 + y * (_HEIGHT / 2 - _TOP))
        for node_id, (x, y) in layout.place(shown).items()
    }
    wanted = [(_cut(one_line(own), _NAME_MAX), " (you)", _WIDTH / 2, _HEIGHT / 2, 11.0)]
    wanted += [
        (
            _cut(label_of(row), _NAME_MAX),
            "",
            *places[row["node_id"]],
            radius_of(row["agents"], len(shown)),
        )
        for row in shown[:_TRIED_MAX]
    ]
    names = _Names(places.values(), [places[row["node_id"]] for row in shown if row["link"]])
    said = summary(counts(rows))
    parts = [
        _opening(f"Network of {own}: {said}"),
        *_rings(layout.rings),
        *(_edge(*places[row["node_id"]]) for row in shown if row["link"]),
        *(_dot(row, *places[row["node_id"]], len(shown)) for row in shown),
        _own_dot(own),
        *names.of_rings(layout.rings),
        *names.of_nodes(wanted),
    ]
    if title:
        words = " · ".join(filter(None, (said, showing(len(rows)))))
        parts.append(_text(12, 20, words, size_px=12, fill=_INK))
    if not rows:
        parts.append(_text(_WIDTH / 2, _HEIGHT / 2 + 40, "no other node yet", anchor="middle"))
    return "".join([*parts, "</svg>"])


def _opening(label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%"'
        f' style="max-width:{_WIDTH}px;background:{_PAPER};{_FONT}" role="img"'
        f' aria-label="{_escape(label)}">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" style="fill:{_PAPER}"/>'
    )


def _own_dot(own: str) -> str:
    return (
        f'<circle cx="{_WIDTH / 2}" cy="{_HEIGHT / 2}" r="11" style="fill:{_BRAND};'
        f'stroke:{_PAPER};stroke-width:2"><title>{_escape(own)}: this node</title></circle>'
    )


def _rings(rings: Sequence[Ring]) -> Iterator[str]:
    for _, radius in rings:
        across, down = _axes(radius)
        yield (
            f'<ellipse cx="{_WIDTH / 2}" cy="{_HEIGHT / 2}" rx="{across:.1f}" ry="{down:.1f}"'
            f' style="fill:none;stroke:{_LINE};stroke-dasharray:2 5"/>'
        )


def _axes(radius: float) -> tuple[float, float]:
    return radius * (_WIDTH / 2 - _SIDE) + 16, radius * (_HEIGHT / 2 - _TOP) + 10


def _edge(x: float, y: float) -> str:
    return (
        f'<line x1="{_WIDTH / 2}" y1="{_HEIGHT / 2}" x2="{x:.1f}" y2="{y:.1f}"'
        f' style="stroke:{_PALE};stroke-opacity:.6"/>'
    )


def _dot(row: Row, x: float, y: float, nodes: int) -> str:
    word = WORDS.get(row["state"], "gone")
    fill = _PAPER if word == "gone" else _FILL[word]
    edge = f"stroke:{_FILL[word]};stroke-width:1.5" if word == "gone" else f"stroke:{_PAPER}"
    faint = "" if row["link"] or word != "alive" else ";fill-opacity:.62"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius_of(row["agents"], nodes):.1f}"'
        f' style="fill:{fill};{edge}{faint}"><title>{_escape(about(row))}</title></circle>'
    )


class _Names:
    """Texts of a picture, each where it touches nothing."""

    def __init__(
        self, dots: Iterable[tuple[float, float]], linked: Sequence[tuple[float, float]]
    ) -> None:
        self._taken: list[Box] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots]
        self._linked = linked

    def of_rings(self, rings: Sequence[Ring]) -> Iterator[str]:
        for label, radius in rings:
            across, down = _axes(radius)
            for step in range(24):
                turn = math.pi / 2 + (step % 2 * 2 - 1) * math.ceil(step / 2) * 0.09
                x, y = _WIDTH / 2 + across * math.cos(turn), _HEIGHT / 2 + down * math.sin(turn)
                wide = 2.5 * len(label) + 4
                if self._take((x - wide, y - 6, x + wide, y + 6)):
                    yield _text(x, y + 3, label, size_px=10, anchor="middle")
                    break

    def of_nodes(self, wanted: Iterable[tuple[str, str, float, float, float]]) -> Iterator[str]:
        """Of the first that have room: name, what stays behind it, place and radius of each."""
        left = _LABELS_MAX
        for name, rest, x, y, radius in wanted:
            spot = self._spot(name, rest, x, y, radius)
            if spot is None:
                continue
            self._taken.append(spot.box)
            yield _text(spot.x, spot.y, spot.text, anchor=spot.anchor, fill=_INK)
            left -= 1
            if not left:
                return

    def _spot(self, name: str, rest: str, x: float, y: float, radius: float) -> _Spot | None:
        """The whole name if there is room; a short one rather than on a line, or none."""
        whole = [spot for spot in _spots(name + rest, x, y, radius) if self._fits(spot.box)]
        short = [
            spot
            for most in _NAMES_SHORT
            if most < len(name)
            for spot in _spots(_cut(name, most) + rest, x, y, radius)
            if self._fits(spot.box)
        ]
        return min([*whole, *short], key=lambda spot: self._lines_in(spot.box), default=None)

    def _take(self, box: Box) -> bool:
        fits = self._fits(box)
        if fits:
            self._taken.append(box)
        return fits

    def _fits(self, box: Box) -> bool:
        inside = box[0] > 2 and box[2] < _WIDTH - 2 and box[3] < _HEIGHT - 2  # noqa: PLR2004
        return inside and not any(_meet(box, other) for other in self._taken)

    def _lines_in(self, box: Box) -> int:
        """How many lines of links run through it."""
        return sum(_crosses(x, y, box) for x, y in self._linked)


class _Spot(NamedTuple):
    """A text, where it may stand, and the room it takes there."""

    text: str
    x: float
    y: float
    anchor: str
    box: Box


def _spots(text: str, x: float, y: float, radius: float) -> Iterator[_Spot]:
    """To the right of a node, to the left, below and above."""
    wide, gap = 6.1 * len(text), radius + 4
    below = gap + 6
    yield _Spot(text, x + gap, y + 3.7, "start", (x + gap, y - 7, x + gap + wide, y + 7))
    yield _Spot(text, x - gap, y + 3.7, "end", (x - gap - wide, y - 7, x - gap, y + 7))
    for off in (below, -below):
        box = (x - wide / 2, y + off - 7, x + wide / 2, y + off + 7)
        yield _Spot(text, x, y + off + 3.7, "middle", box)


def _crosses(x: float, y: float, box: Box) -> bool:
    """Whether the line from the middle to this place runs through the box."""
    first, last = 0.0, 1.0
    for start, end, low, high in ((_WIDTH / 2, x, *box[::2]), (_HEIGHT / 2, y, *box[1::2])):
        step = end - start
        if not step:
            if not low <= start <= high:
                return False
            continue
        one, two = (low - start) / step, (high - start) / step
        first, last = max(first, min(one, two)), min(last, max(one, two))
    return first < last


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _cut(text: str, most: int) -> str:
    """A text of so many characters, with a sign that there is more."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _text(
    x: float, y: float, text: str, *, size_px: int = 11, anchor: str = "start", fill: str = _PALE
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="font-size:{size_px}px;'
        f'fill:{fill};stroke:{_PAPER};stroke-width:3px;paint-order:stroke">{_escape(text)}</text>'
    )


def _escape(text: str) -> str:
    return html.escape(one_line(text))
