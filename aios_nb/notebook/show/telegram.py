"""A code for a phone: to scan, to open, or to type."""

from __future__ import annotations

from aios_bots.core.bridge import Code
from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle, dim, esc
from aios_nb.people.bridges import about_code, qr_lines, qr_svg, spelled


def code(said: Code) -> Bundle:
    *_, about = [line for line in about_code(said) if "/join" not in line]
    drawn = qr_svg(said.link) if said.link else ""
    picture = f'<div class="q" role="img" aria-label="QR code of the link">{drawn}</div>'
    link = (
        f'<a href="{esc(said.link)}" target="_blank" rel="noopener noreferrer">{esc(said.link)}</a>'
        if said.link
        else ""
    )
    words = "".join(
        f"<div>{line}</div>"
        for line in (
            f'<code style="font-size:20px;letter-spacing:.08em">{esc(spelled(said.code))}</code>',
            f"scan it, or open {link}" if drawn else f"open {link}" if link else "",
            f"or send the bot <code>/pair {esc(spelled(said.code))}</code>",
            dim(about),
            dim("it leads into the conversation at once") if said.conversation else "",
        )
        if line
    )
    body = (
        '<div class="b" style="display:flex;flex-wrap:wrap;gap:16px;align-items:center">'
        f'{picture if drawn else ""}<div style="display:grid;gap:6px">{words}</div></div>'
    )
    text = "\n".join(filter(None, (qr_lines(said.link) if said.link else "", *about_code(said))))
    return page.bundle(page.panel("A code for a phone", said.role.value, body), text)
