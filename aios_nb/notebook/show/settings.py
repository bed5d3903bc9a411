"""Settings for other programs: pieces to copy, each with where it goes."""

from __future__ import annotations

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.settings_for import BY_URL, Settings, Step
from aios_nb.richtext import one_line, plain


def settings(said: Settings) -> Bundle:
    """The way by command in full; the way by URL where one has to look for it."""
    body = "".join(map(_step, said.by_command))
    body += f'<div class="b"><b>Next:</b> {esc(said.next)}</div>'
    further = "".join(map(_step, said.by_url))
    body += f'<details class="b"><summary>{esc(BY_URL)}</summary>{further}</details>'
    text = [line for step in said.by_command for line in _lines(step)]
    text += [f"Next: {one_line(said.next)}", "", f"{BY_URL}:", ""]
    text += [line for step in said.by_url for line in _lines(step)]
    shown = page.panel(f"{said.title} and your agents", "copy this; no secret is in it", body)
    return page.bundle(shown, plain("\n".join(text)).rstrip("\n"))


def _step(step: Step) -> str:
    where = f"<br>{page.mono(step.file)}" if step.file else ""
    return (
        f'<div class="b">{dim(step.about)}{where}</div><pre class="p">{page.lines(step.text)}</pre>'
    )


def _lines(step: Step) -> list[str]:
    where = f": {one_line(step.file)}" if step.file else ""
    return [f"# {one_line(step.about)}{where}", step.text, ""]
