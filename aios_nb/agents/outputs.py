"""What an agent may answer with, turned into text, data and files.

=====================================  ======================================================
the agent gives                        the caller gets
=====================================  ======================================================
``str``, ``None``                      text
a number, ``True``, ``False``          data, and the same as text
``dict``, ``list``, a dataclass,       data, and its JSON as text (cut for people)
a msgspec ``Struct``, a pydantic model
a pandas DataFrame or Series           data ``{columns, rows}``, and the first rows as text
a matplotlib or plotly figure, an      a PNG file
image of PIL
``aios.File``                          a file
what ``ctx.call`` returned             its text, data and files
a tuple                                all its parts: text on lines of its own, one data, files
=====================================  ======================================================

A generator yields any of these: text is streamed, numbers as text. Text made from data is used only
when the agent gave no text of its own.
"""

from __future__ import annotations

import io
import math
import numbers
import sys
from dataclasses import is_dataclass
from typing import Any

import msgspec

from aios_nb.agents.tables import frame_data, is_frame, is_series, plain_cell, table_text
from aios_nb.envelope import (
    DATA_LIMIT_BYTES,
    FILES_PER_MESSAGE,
    TEXT_LIMIT_BYTES,
    FileRef,
    Outcome,
)
from aios_nb.errors import AgentFailed, RpcError, TooLarge
from aios_nb.parts import File, Reply

SHOWN_JSON = 2000
"""Characters of data shown as text; the data itself is whole."""
_ACCEPTED = (
    "return text, a number, a dict, a list, a DataFrame, a figure, an aios.File, "
    "or a tuple of these"
)


class Answer:
    """An answer as it grows: text, at most one piece of data, files."""

    __slots__ = ("_bytes", "_derived", "_has_data", "_pieces", "data", "files")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._bytes = 0
        self._derived = ""
        self._has_data = False
        self.data: Any = None
        self.files: list[File | FileRef] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces) if self._pieces else self._derived

    def add(self, value: Any) -> str:
        """Take what the agent returned; returns the text that came with it."""
        if type(value) is str:
            return self._add_text(value)
        if value is None:
            return ""
        if isinstance(value, (Reply, Outcome)):
            return self._add_reply(value)
        if isinstance(value, str):
            return self._add_text(str(value))
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return self._add_parts(value)
        if isinstance(value, (File, FileRef)):
            self._add_file(value)
        elif isinstance(value, numbers.Number):
            self._add_number(value)
        else:
            self._add_thing(value)
        return ""

    def add_piece(self, value: Any) -> str:
        """Take what a generator yielded; returns the text to stream."""
        if type(value) is str:
            return self._add_text(value)
        if isinstance(value, numbers.Number):
            return self._add_text(str(value))
        return self.add(value)

    def _add_text(self, text: str) -> str:
        if text.isascii():
            self._bytes += len(text)
        else:
            try:
                self._bytes += len(text.encode())
            except UnicodeEncodeError:
                # Half of a surrogate pair cannot travel as UTF-8.
                text = text.encode("utf-8", "replace").decode()
                self._bytes += len(text.encode())
        if self._bytes > TEXT_LIMIT_BYTES:
            raise TooLarge(
                f"the reply has more than {TEXT_LIMIT_BYTES >> 20} MB of text",
                hint="send a file instead: aios.File(text.encode(), name=…)",
            )
        if text:
            self._pieces.append(text)
        return text

    def _add_reply(self, value: Reply | Outcome) -> str:
        text = value.text if isinstance(value, Outcome) else str(value)
        if value.data is not None:
            self._add_data(value.data, "")
        for file in value.files:
            self._add_file(getattr(file, "ref", file))  # the public Reply's files know their site
        return self._add_text(text)

    def _add_parts(self, parts: tuple[Any, ...]) -> str:
        said: list[str] = []
        for part in parts:
            at = len(self._pieces)
            text = self.add(part)
            if text and said:
                self._pieces.insert(at, "\n")
                said.append("\n")
            if text:
                said.append(text)
        return "".join(said)

    def _add_file(self, file: File | FileRef) -> None:
        if len(self.files) >= FILES_PER_MESSAGE:
            raise TooLarge(f"the reply has more than {FILES_PER_MESSAGE} files")
        self.files.append(file)

    def _add_number(self, value: numbers.Number) -> None:
        plain = value.item() if hasattr(value, "item") else value
        exact = isinstance(plain, (bool, int)) or (
            isinstance(plain, float) and math.isfinite(plain)
        )
        # Other numbers (NaN, Fraction, complex) have no JSON form: they are text only.
        self._add_data(plain if exact else None, str(value))

    def _add_thing(self, value: Any) -> None:
        if is_series(value):
            value = value.to_frame()
        if is_frame(value):
            table = frame_data(value)
            self._add_data(table, table_text(table["columns"], table["rows"]))
        elif (picture := _picture(value)) is not None:
            self._add_file(picture)
        elif _is_data(value):
            self._add_data(value._asdict() if hasattr(value, "_asdict") else value, None)
        else:
            raise AgentFailed(
                f"the agent answered with {_a(_type_name(value))}, which cannot be sent",
                hint=_hint(value),
            )

    def _add_data(self, value: Any, derived: str | None) -> None:
        if self._has_data:
            raise AgentFailed(
                "the agent gave data twice in one reply", hint="put both into one dict or list"
            )
        self._has_data = True
        self.data, encoded = _through_json(value)
        if derived is None:
            shown = encoded[: 4 * SHOWN_JSON].decode(errors="ignore")
            derived = shown if len(shown) <= SHOWN_JSON else shown[:SHOWN_JSON] + "…"
        self._derived = derived


def as_data(value: Any) -> Any:
    """A value as data of a message: plain JSON values, checked for size."""
    if is_series(value):
        value = value.to_frame()
    return _through_json(frame_data(value) if is_frame(value) else value)[0]


def _through_json(value: Any) -> tuple[Any, bytes]:
    """The value as it will arrive anywhere, and its bytes: here and far away must look alike."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
        plain = msgspec.json.decode(encoded)
    except RecursionError:
        raise AgentFailed("the agent's data is nested too deeply or contains itself") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise AgentFailed(f"the agent's data cannot be sent as JSON: {error}") from error
    if len(encoded) > DATA_LIMIT_BYTES:
        raise TooLarge(
            f"the reply has {len(encoded) / (1 << 20):.1f} MB of data; "
            f"{DATA_LIMIT_BYTES >> 20} MB fit",
            hint="send less, or a file: aios.File(…)",
        )
    return plain, encoded


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one line per kind of value
    """What msgspec does not know, as something it does."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return dict(value)
    if is_series(value):
        value = value.to_frame()
    if is_frame(value):
        return frame_data(value)
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas"):
        return plain_cell(value)
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, File):
        raise TypeError("a file must stand beside the data: return (data, file)")
    raise TypeError(f"it contains a {_type_name(value)}")


def _is_data(value: Any) -> bool:
    return (
        isinstance(value, (dict, list, msgspec.Struct))
        or hasattr(value, "_asdict")
        or (is_dataclass(value) and not isinstance(value, type))
        or hasattr(type(value), "model_dump")
        or (type(value).__module__ == "numpy" and hasattr(value, "tolist"))
    )


def _picture(value: Any) -> File | None:
    """The PNG of a figure or an image; None when it is neither."""
    root = type(value).__module__.partition(".")[0]
    try:
        if root == "PIL" and hasattr(value, "save"):
            return _image_png(value)
        if root == "plotly" and hasattr(value, "to_image"):
            return File(value.to_image(format="png"), name="figure.png")
        if root in ("matplotlib", "seaborn") or hasattr(value, "savefig"):
            figure = value if hasattr(value, "savefig") else getattr(value, "figure", None)
            if hasattr(figure, "savefig"):
                return _figure_png(figure)
    except RpcError:
        raise
    except Exception as error:
        raise AgentFailed(
            f"the {_type_name(value)} could not be drawn: {type(error).__name__}",
            hint="pip install kaleido, or return a file" if root == "plotly" else None,
        ) from error
    return None


def _figure_png(figure: Any) -> File:
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    pyplot = sys.modules.get("matplotlib.pyplot")
    inner = getattr(figure, "figure", figure)
    if pyplot is not None and hasattr(inner, "number"):
        pyplot.close(inner)  # pyplot keeps every figure it made until it is closed
    return File(out.getvalue(), name="figure.png")


def _image_png(image: Any) -> File:
    out = io.BytesIO()
    try:
        image.save(out, format="PNG")
    except OSError:  # a mode that PNG lacks, such as CMYK
        out = io.BytesIO()
        image.convert("RGB").save(out, format="PNG")
    return File(out.getvalue(), name="image.png")


def _a(name: str) -> str:
    """A type in a sentence: an object, a module, bytes."""
    if name in {"bytes", "bytearray"}:
        return "bytes"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _type_name(value: Any) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__name__}"


def _hint(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return 'return aios.File(content, name="…")'
    if hasattr(value, "__fspath__"):
        return "return aios.File(path)"
    return _ACCEPTED
