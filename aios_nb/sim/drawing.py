"""Plots of simulated networks that look alike: few lines, named where they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aios_nb.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#22303c"
QUIET = "#8795a1"
BLUE = "#2b6cb0"
ORANGE = "#dd6b20"
GREEN = "#2f9e78"
RED = "#c53050"
VIOLET = "#7b5cb8"
COLOURS = (BLUE, ORANGE, GREEN, VIOLET, RED)
_FAINT = "#e4e9ed"
_STATES = (None, "alive", "suspect", "dead", "left")
_STATE_COLOURS = ("#f3f5f7", "#b9e0d0", "#f0a35e", INK, QUIET)
_SIZE_INCHES = (7.6, 3.4)
_DPI = 110


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install matplotlib") from error
    return plt


def canvas(title: str, across: str, up: str, *, size: tuple[float, float] = _SIZE_INCHES) -> Axes:
    """Empty axes with a title and what the directions mean."""
    axes: Axes
    _, axes = _pyplot().subplots(figsize=size, dpi=_DPI, layout="constrained")
    dress(axes, title, across, up)
    return axes


def dress(axes: Axes, title: str, across: str, up: str) -> None:
    """The common look, on axes that are there already."""
    axes.set_title(title, loc="left", color=INK, fontsize=12, fontweight="bold", pad=12)
    axes.set_xlabel(across, color=QUIET)
    axes.set_ylabel(up, color=QUIET)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)
    axes.tick_params(colors=QUIET, length=0, which="both")
    axes.grid(axis="y", color=_FAINT, linewidth=1)
    axes.set_axisbelow(True)


def line(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    name: str = "",
    *,
    colour: str = BLUE,
    dashed: bool = False,
    points: bool = False,
    lift: float = 0.0,
) -> None:
    """A line with its name at its end; ``lift`` moves the name up by so many points."""
    axes.plot(
        xs,
        ys,
        color=colour,
        linewidth=1.4 if dashed else 2.2,
        linestyle=(0, (4, 3)) if dashed else "-",
        marker="o" if points else "",
        markersize=5,
        solid_capstyle="round",
        clip_on=False,
    )
    if name:
        axes.annotate(
            name,
            (xs[-1], ys[-1]),
            xytext=(7, lift),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9.5,
            annotation_clip=False,
        )


def dots(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], name: str = "", *, colour: str = ORANGE
) -> None:
    """Single measurements, to hold against a line."""
    axes.scatter(xs, ys, s=58, color=colour, edgecolor="white", linewidth=1.2, zorder=5)
    if name:
        axes.annotate(
            name,
            (xs[-1], ys[-1]),
            xytext=(6, -13),
            textcoords="offset points",
            color=colour,
            fontsize=9.5,
        )


def by_size(axes: Axes, sizes: Sequence[int]) -> None:
    """Numbers of nodes from left to right, each ten times as many as far as the one before."""
    shown = [size for size in sizes if str(size).strip("0") == "1"]
    axes.set_xscale("log")
    axes.set_xticks(shown, [f"{size:,}" for size in shown])
    axes.minorticks_off()


def views(axes: Axes, rows: Sequence[Sequence[str | None]], title: str) -> None:
    """What each node (a row) thinks of each other (a column): one small square for each pair."""
    from matplotlib.colors import ListedColormap

    numbers = [[_STATES.index(state) if state in _STATES else 0 for state in row] for row in rows]
    axes.imshow(numbers, cmap=ListedColormap(list(_STATE_COLOURS)), vmin=0, vmax=len(_STATES) - 1)
    axes.set_title(title, loc="left", color=INK, fontsize=10.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_xticks([each - 0.5 for each in range(len(rows) + 1)], minor=True)
    axes.set_yticks([each - 0.5 for each in range(len(rows) + 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=0.6)
    axes.tick_params(which="both", length=0)


def panels(count: int, title: str, *, size: tuple[float, float]) -> Sequence[Axes]:
    """Several empty axes side by side, under one title."""
    figure, axes = _pyplot().subplots(1, count, figsize=size, dpi=_DPI, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12, fontweight="bold")
    return list(axes)


def moment(axes: Axes, time: float, what: str, *, level: float = 0.98) -> None:
    """An event: a thin upright line and a word."""
    axes.axvline(time, color=QUIET, linewidth=1, linestyle=(0, (2, 3)))
    axes.annotate(
        what,
        (time, level),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        color=QUIET,
        fontsize=9,
        va="top",
    )


def moments(axes: Axes, story: Sequence[tuple[float, str]], *, level: float = 0.98) -> None:
    """All events of a story; neighbours stand at different heights."""
    for number, (time, what) in enumerate(story):
        moment(axes, time, what, level=level - 0.1 * (number % 2))
