"""A code for a phone: to scan, to open, or to type."""

from __future__ import annotations

import re

from aios_bots.core.bridge import Code
from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.bridges import about_code, for_whom, qr_picture, spelled
from aios_nb.richtext import plain

_LINK = re.compile(r"https://[\w.-]+/[\w./?=&-]*", re.ASCII)
"""An address of a bot; its name is the app's word, not ours."""


def code(said: Code) -> Bundle:
    link = said.link if _LINK.fullmatch(said.link) else ""
    drawn = qr_picture(link) if link else ""
    picture = f'<img alt="QR code of the link" width="150" src="{esc(drawn)}">' if drawn else ""
    pair = f"<code>/pair {esc(spelled(said.code))}</code>"
    rows = [f'<code style="font-size:20px">{esc(spelled(said.code))}</code>']
    if link:
        opens = f'<a href="{esc(link)}" target="_blank" rel="noopener noreferrer">{esc(link)}</a>'
        rows.append(f"{'Scan it, or open' if drawn else 'Open'} {opens}, or send the bot {pair}")
    else:
        rows.append(f"Send the bot {pair}")
    rows += map(dim, for_whom(said))
    words = "".join(f"<div>{row}</div>" for row in rows)
    body = (
        '<div class="b" style="display:flex;flex-wrap:wrap;gap:16px;align-items:center">'
        f'{picture}<div style="display:grid;gap:6px;flex:1;min-width:240px">{words}</div></div>'
    )
    text = plain("\n".join(about_code(said)))
    return page.bundle(page.panel("A code for a phone", said.role.value, body), text)
