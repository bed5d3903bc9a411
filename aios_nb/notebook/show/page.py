"""HTML of our own making for cell outputs: escaped, calm, right in any theme and in saved pages.

Colours come from the page (JupyterLab's variables where there are any, else what is inherited), so
that dark themes, nbconvert and VS Code need nothing special.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from aios_nb.richtext import one_line, parse, plain, to_html

Bundle = dict[str, Any]
"""What is shown, by mime type."""

_STYLE = """
.aios-out{--l:var(--jp-border-color2,rgba(128,128,128,.32));--ok:var(--jp-success-color1,#2e9e5b);
--warn:var(--jp-warn-color1,#c98a00);--bad:var(--jp-error-color1,#cf3f3f);
--in:var(--jp-brand-color1,#1976d2);
font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-ui-font-color1,inherit);
border:1px solid var(--l);border-radius:10px;overflow:auto;max-width:980px;margin:2px 0;
text-align:left;container-type:inline-size;contain-intrinsic-inline-size:600px}
.aios-out .h{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline;padding:7px 12px;
border-bottom:1px solid var(--l);background:rgba(128,128,128,.07)}
.aios-out .b{padding:8px 12px}
.aios-out .d{opacity:.68;font-size:11.5px}
.aios-out .x{overflow:auto;max-height:480px}
.aios-out .t{display:inline-block;background:rgba(128,128,128,.14);border-radius:4px;padding:0 6px;
font-size:11px;margin-right:4px}
.aios-out .o{display:inline-block;width:8px;height:8px;border-radius:50%;
background:rgba(128,128,128,.7)}
.aios-out .o.ok{background:var(--ok)} .aios-out .o.warn{background:var(--warn)}
.aios-out .ok-t{color:color-mix(in srgb,var(--ok) 65%,currentcolor)}
.aios-out .warn-t{color:color-mix(in srgb,var(--warn) 50%,currentcolor)}
.aios-out .bad-t{color:color-mix(in srgb,var(--bad) 75%,currentcolor)}
.aios-out code,.aios-out pre{font-family:var(--jp-code-font-family,ui-monospace,Menlo,monospace);
font-size:12px}
.aios-out pre.p{margin:0;padding:8px 12px;overflow:auto;max-height:480px;white-space:pre-wrap;
background:none;color:inherit}
div.aios-out table.r{border-collapse:collapse;width:100%;margin:0;font-size:13px;
table-layout:auto;border:0}
div.aios-out table.r>tbody>tr,div.aios-out table.r>thead>tr{background:none!important}
div.aios-out table.r>*>tr>td,div.aios-out table.r>*>tr>th{padding:7px 12px;text-align:left;
vertical-align:top;border:0;border-top:1px solid var(--l);overflow-wrap:break-word;
white-space:normal;max-width:none}
.aios-out .y{overflow-wrap:anywhere}
div.aios-out table.r>thead>tr>th{border-top:0;padding:5px 12px;font-size:11.5px;font-weight:500;
opacity:.68;white-space:nowrap}
div.aios-out table.r>*>tr:first-child>td{border-top:0}
div.aios-out table.r>thead+tbody>tr:first-child>td{border-top:1px solid var(--l)}
.aios-out .k{white-space:nowrap}
.aios-out .s{min-width:120px;max-width:240px}
@container (max-width:560px){
div.aios-out table.w,div.aios-out table.w>tbody{display:block}
div.aios-out table.w>thead{display:none}
div.aios-out table.w>tbody>tr{display:grid;grid-template-columns:auto minmax(0,1fr);
column-gap:10px;padding:7px 12px;border-top:1px solid var(--l)}
div.aios-out table.w>tbody>tr:first-child{border-top:0}
div.aios-out table.w>tbody>tr>td{display:block;padding:0;border:0!important;grid-column:1/-1}
div.aios-out table.w>tbody>tr>td:has(>.o:only-child){grid-column:1}
div.aios-out table.w>tbody>tr>td:has(>.o:only-child)~td{grid-column:2}
div.aios-out table.w>tbody>tr>td:empty{display:none}
.aios-out table.w .s{max-width:none}
.aios-out table.w .s br{display:none}
.aios-out table.w .s br+.d{margin-left:6px}
div.aios-out table.w>tbody>tr>td[data-of]::before{content:attr(data-of) " ";opacity:.68;
font-size:11.5px}
}
.aios-out .i{font:11.5px var(--jp-code-font-family,ui-monospace,Menlo,monospace);opacity:.68;
overflow-wrap:anywhere}
.aios-out pre code{background:none!important;padding:0!important}
div.aios-out table.v{border-collapse:collapse;font-size:12px;margin:6px 0;border:0}
div.aios-out table.v>*>tr>*{border:1px solid var(--l);padding:3px 8px;text-align:left;
vertical-align:top;white-space:nowrap}
div.aios-out table.v .y{white-space:normal;min-width:180px;max-width:400px}
div.aios-out table.v>*>tr>td.num{text-align:right;font-variant-numeric:tabular-nums}
.aios-out img{max-width:100%;height:auto;border-radius:6px;margin:4px 0;background:#fff}
.aios-out .bar{height:4px;border-radius:2px;background:rgba(128,128,128,.2);overflow:hidden;
flex:1;min-width:80px;max-width:240px;align-self:center}
.aios-out .bar>i{display:block;height:100%;background:var(--in)}
.aios-out.line{border:0;border-radius:0;display:flex;gap:10px;align-items:center}
.aios-out details>summary{cursor:pointer;opacity:.68;font-size:11.5px}
"""
KIND = "aios-out mathjax_ignore tex2jax_ignore"
"""What a piece of ours is, to our style and to MathJax, which would set "$5 or $6" as a formula."""
STYLE = "<style>" + _STYLE.replace("\n", "") + "</style>"


def esc(text: object) -> str:
    """One line of anybody's text, safe between tags and in attributes."""
    return html.escape(one_line(str(text)))


def lines(text: str) -> str:
    """Anybody's text with its line breaks, safe between tags."""
    return html.escape(plain(text))


def rich(text: str) -> str:
    """Markdown of an agent, as safe HTML."""
    return to_html(parse(text))


def dim(text: object) -> str:
    """Beside the point; nothing of it where there is no text."""
    said = esc(text)
    return f'<span class="d">{said}</span>' if said else ""


def mono(text: object) -> str:
    """An id, to be read letter by letter."""
    return f'<span class="i">{esc(text)}</span>'


def label(text: object) -> str:
    """What the rest of the row is about."""
    return keep(dim(text))


def free(body: str) -> str:
    """Ready HTML with words of any length, which are broken where the page ends."""
    return f'<div class="y">{body}</div>'


def aside(sign: str, *words: str) -> str:
    """Ready HTML of few words, and below it what else there is to know."""
    known = " · ".join(keep(esc(word)) for word in words if word)
    return f'<div class="s">{sign}<br><span class="d">{known}</span></div>'


def keep(body: str) -> str:
    """Ready HTML that is not broken into lines."""
    return f'<span class="k">{body}</span>'


def dot(state: str) -> str:
    """The sign for how a node or an agent is; the word is in its title."""
    kind = {"alive": "ok", "suspect": "warn"}.get(state, "")
    word = esc(word_for(state) or "not known to be alive")
    return f'<span class="o {kind}" role="img" aria-label="{word}" title="{word}"></span>'


def word_for(state: str) -> str:
    """What people call the state of a node."""
    return {"suspect": "not answering", "dead": "gone", "left": "gone"}.get(state, state)


def tags(words: Iterable[str]) -> str:
    return "".join(f'<span class="t">{esc(word)}</span>' for word in words)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows of ready HTML, of a label and what it is about."""
    return f'<table class="r"><tbody>{"".join(map(_row, rows))}</tbody></table>'


def parts(some: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """Such rows under titles; one table, so that all parts have the same columns."""
    body = ""
    for title, rows in some:
        body += f'<tr><td colspan="{max(map(len, rows), default=1)}">{dim(title)}</td></tr>'
        body += "".join(map(_row, rows))
    return f'<table class="r"><tbody>{body}</tbody></table>'


def wide(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of ready HTML with many cells: where the page is narrow they stand below each other.

    What is in the head is escaped.
    """
    titles = "".join(f"<th>{esc(title)}</th>" if title else "<td></td>" for title in head)
    top = f"<thead><tr>{titles}</tr></thead>" if head else ""
    body = "".join(_row(row, head) for row in rows)
    return f'<table class="r w">{top}<tbody>{body}</tbody></table>'


def _row(cells: Sequence[str], head: Sequence[str] = ()) -> str:
    """Where the page is too narrow for a head, small cells tell their titles themselves."""
    titles = [*head, *[""] * (len(cells) - len(head))]
    return f"<tr>{''.join(map(_cell, cells, titles))}</tr>"


def _cell(body: str, title: str) -> str:
    speaks = "<b>" in body or body.startswith("<div")
    named = f' data-of="{esc(title)}"' if title and body and not speaks else ""
    return f"<td{named}>{body}</td>"


def panel(title: str, about: str = "", body: str = "") -> str:
    """A framed piece of ours: a head and ready HTML below."""
    head = f'<div class="h"><b>{esc(title)}</b>{dim(about) if about else ""}</div>'
    return f'{STYLE}<div class="{KIND}">{head}{body}</div>'


def bare(body: str) -> str:
    """The same without a head."""
    return f'{STYLE}<div class="{KIND}">{body}</div>'


def bundle(page: str, text: str) -> Bundle:
    return {"text/html": page, "text/plain": text}
