"""Texts that mean harm: what a stranger may put into a name, a title, a message, an error.

Every script in here would set ``window.aios_pwned`` to its own name; ``HURT`` is true in a page
where one of them ran or left something behind that could. ``LARGE`` are texts that take time,
memory or stack, and nothing else: they are made on demand.
"""

from __future__ import annotations

from collections.abc import Callable

MARK = "aios_pwned"
HURT = f"""(root) => {{
  const found = [];
  if (window.{MARK} !== undefined) found.push("ran: " + window.{MARK});
  const bad = ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "META", "LINK", "BASE", "MATH", "VIDEO",
    "AUDIO", "MARQUEE", "FOREIGNOBJECT", "ANIMATE", "SET", "TEMPLATE", "PORTAL", "NOSCRIPT"];
  const leads = ["href", "src", "action", "formaction", "xlink:href", "srcdoc"];
  const good = /^(https?:|mailto:|blob:|#|data:image\\/(png|jpeg|gif|webp)[;,])/i;
  const look = (node) => {{
    for (const one of node.querySelectorAll("*")) {{
      if (bad.includes(one.tagName.toUpperCase())) found.push("element: " + one.tagName);
      for (const {{ name, value }} of one.attributes) {{
        if (/^on/i.test(name)) found.push("handler: " + one.tagName + " " + name);
        if (leads.includes(name) && !good.test(value)) found.push("address: " + value);
      }}
      if (one.shadowRoot) look(one.shadowRoot);
    }}
  }};
  look(root);
  return found;
}}"""
"""A function of JavaScript: what is wrong below an element; an empty list is what we want."""


def _js(name: str) -> str:
    return f"window.{MARK}='{name}'"


def _named(*cases: tuple[str, str]) -> dict[str, str]:
    return {name: text.replace("RUN", _js(name)) for name, text in cases}


HTML = _named(
    ("script", "<script>RUN</script>"),
    ("script-upper", "<SCRIPT>RUN</SCRIPT>"),
    ("script-split", "<scr<script>ipt>RUN</scr</script>ipt>"),
    ("script-slash", "<script/x>RUN</script>"),
    ("script-src", '<script src="data:text/javascript,RUN"></script>'),
    ("closing-first", "</textarea></title></style></script><script>RUN</script>"),
    ("img-onerror", '<img src=x onerror="RUN">'),
    ("img-slashes", "<img/src=x/onerror=RUN>"),
    ("img-backticks", "<img src=`x` onerror=`RUN`>"),
    ("body-onload", "<body onload=RUN>"),
    ("details-ontoggle", "<details open ontoggle=RUN>x</details>"),
    ("input-autofocus", "<input autofocus onfocus=RUN>"),
    ("video-source", "<video><source onerror=RUN></video>"),
    ("marquee", "<marquee onstart=RUN>x</marquee>"),
    ("animation", "<b style='animation:x 1s' onanimationstart=RUN>x</b>"),
    ("iframe-srcdoc", '<iframe srcdoc="<script>parent.RUN</script>"></iframe>'),
    ("iframe-javascript", "<iframe src=javascript:parent.RUN></iframe>"),
    ("object-data", "<object data=javascript:RUN></object>"),
    ("form-action", "<form action=javascript:RUN><button>x</button></form>"),
    ("button-formaction", "<button formaction=javascript:RUN>x</button>"),
    ("meta-refresh", '<meta http-equiv=refresh content="0;url=javascript:RUN">'),
    ("base", '<base href="javascript:RUN//"><a href=x>x</a>'),
    ("link-import", '<link rel=stylesheet href="data:text/css,*{color:red}">'),
    ("style", "<style>*{display:none}@import'data:text/css,x'</style>"),
    ("style-expression", '<p style="x:expression(RUN);background:url(javascript:RUN)">x</p>'),
    ("a-javascript", '<a href="javascript:RUN">x</a>'),
    ("a-handler", "<a onmouseover=RUN style='position:fixed;inset:0'>x</a>"),
    ("svg-onload", "<svg onload=RUN></svg>"),
    ("svg-script", "<svg><script>RUN</script></svg>"),
    ("svg-animate", "<svg><animate onbegin=RUN attributeName=x dur=1s></svg>"),
    ("svg-set", "<svg><a><set attributeName=href to=javascript:RUN /><text>x</text></a></svg>"),
    ("svg-use", '<svg><use href="data:image/svg+xml,<svg id=x onload=RUN>#x"/></svg>'),
    ("svg-foreign", "<svg><foreignObject><img src=x onerror=RUN></foreignObject></svg>"),
    ("svg-style", "<svg><style><img src=x onerror=RUN></style></svg>"),
    ("math", '<math><mtext><img src=x onerror="RUN"></mtext></math>'),
    ("math-href", '<math href="javascript:RUN">x</math>'),
    ("math-mutation", "<math><mtext><table><mglyph><style><!--</style><img src=x onerror=RUN>"),
    ("mutation-p", '<p id="</title><img src=x onerror=RUN>">x'),
    ("mutation-noscript", '<noscript><p title="</noscript><img src=x onerror=RUN>">'),
    ("template", "<template><img src=x onerror=RUN></template>"),
    ("comment", "<!--><img src=x onerror=RUN>-->"),
    ("comment-nested", "<!-- <!-- --> <img src=x onerror=RUN> -->"),
    ("cdata", "<![CDATA[<img src=x onerror=RUN>]]>"),
    ("processing", "<?xml version='1.0'?><img src=x onerror=RUN>"),
    ("doctype", "<!DOCTYPE x [<!ENTITY a '<img src=x onerror=RUN>'>]>&a;"),
    ("attribute-break", "\" onmouseover=\"RUN\" x='"),
    ("attribute-break-single", "' onmouseover='RUN' x=\""),
    ("text-break", "</div></td></tr></table><img src=x onerror=RUN>"),
    ("entities", "&lt;img src=x onerror=RUN&gt;"),
    ("entities-numeric", "&#60;img src=x onerror=RUN&#62;"),
    ("entities-double", "&amp;lt;img src=x onerror=RUN&amp;gt;"),
    ("entities-open", "&#x3c&#x3Cimg src=x onerror=RUN&#x3e"),
    ("percent", "%3Cscript%3ERUN%3C/script%3E"),
    ("unicode-escape", "\\u003cscript\\u003eRUN\\u003c/script\\u003e"),
    ("full-width", "\uff1cscript\uff1eRUN\uff1c/script\uff1e"),
    ("kelvin", "<\u017fcript>RUN</\u017fcript>"),
    ("null-in-tag", "<scr\x00ipt>RUN</scr\x00ipt>"),
    ("template-braces", "{{constructor.constructor('RUN')()}}"),
    ("template-dollar", "${RUN}"),
    ("template-erb", "<%= RUN %>"),
    ("css-break", "}*{background:url('javascript:RUN')}/*"),
    ("js-string-break", "';RUN;//"),
    ("json-break", '"}];RUN;[{"'),
    ("script-end", "</script><script>RUN</script>"),
    ("mathjax", "$\\href{javascript:RUN}{x}$ \\(\\unicode{x3c}\\) \\[\\require{html}\\]"),
    ("mathjax-handler", '$$\\class{x" onmouseover="RUN}{y}\\cssId{<img>}{z}$$'),
)  # fmt: skip
"""HTML in its many forms, which must stay text."""

LINKS = _named(
    ("javascript", "[x](javascript:RUN)"),
    ("javascript-case", "[x](JaVaScRiPt:RUN)"),
    ("javascript-space", "[x]( javascript:RUN)"),
    ("javascript-angle", "[x](<javascript:RUN>)"),
    ("javascript-entity", "[x](&#106;avascript&colon;RUN)"),
    ("javascript-entity-zeros", "[x](&#0000106avascript:RUN)"),
    ("javascript-tab", "[x](java&Tab;script:RUN)"),
    ("javascript-newline", "[x](java&NewLine;script:RUN)"),
    ("javascript-real-tab", "[x](<java\tscript:RUN>)"),
    ("javascript-control", "[x](\x01javascript:RUN)"),
    ("javascript-zero-width", "[x](java\u200bscript:RUN)"),
    ("javascript-escaped", "[x](javascript\\:RUN)"),
    ("javascript-percent", "[x](javascript%3ARUN)"),
    ("javascript-slashes", "[x](javascript://example.org/%0ARUN)"),
    ("javascript-autolink", "<javascript:RUN>"),
    ("javascript-title", "[x](javascript:RUN 'y')"),
    ("vbscript", "[x](vbscript:msgbox)"),
    ("data", "[x](data:text/html,<script>RUN</script>)"),
    ("data-base64", "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)"),
    ("data-image", "![x](data:image/svg+xml,<svg onload=RUN>)"),
    ("data-autolink", "<data:text/html,<script>RUN</script>>"),
    ("file", "[x](file:///etc/passwd)"),
    ("blob", "[x](blob:https://example.org/0)"),
    ("filesystem", "[x](filesystem:https://example.org/x)"),
    ("view-source", "[x](view-source:javascript:RUN)"),
    ("protocol-relative", "[x](//evil.example/x)"),
    ("relative", "[x](../../api/kernels?token=1)"),
    ("backslashes", "[x](https:\\\\evil.example)"),
    ("userinfo", "[x](https://bank.example@evil.example/)"),
    ("userinfo-escaped", "[x](https://bank.example%40evil.example/)"),
    ("userinfo-bare", "https://bank.example@evil.example/"),
    ("pretended", "[https://bank.example](https://evil.example)"),
    ("pretended-name", "[bank.example](https://evil.example/bank.example)"),
    ("homograph", "https://\u0430pple.example/"),
    ("title-break", "[x](https://a.example 'y\" onmouseover=\"RUN')"),
    ("href-break", '[x](https://a.example/"onmouseover="RUN")'),
    ("href-break-single", "[x](https://a.example/'onmouseover='RUN')"),
    ("bare-break", 'https://a.example/"onmouseover="RUN"'),
    ("bare-angle", "https://a.example/<img/src=x/onerror=RUN>"),
    ("image-onerror", '![x" onerror="RUN](https://a.example/x.png)'),
    ("image-remote", "![you were seen](https://tracker.example/pixel.png)"),
    ("image-javascript", "![x](javascript:RUN)"),
    ("image-in-link", "[![x](https://a.example/x.png)](javascript:RUN)"),
    ("link-in-image", "![[x](javascript:RUN)](https://a.example)"),
    ("reference", "[x]\n\n[x]: javascript:RUN"),
    ("reference-title", "[x]\n\n[x]: https://a.example '\"><img src=x onerror=RUN>'"),
    ("label-html", "[<img src=x onerror=RUN>](https://a.example)"),
    ("mail-headers", "[x](mailto:a@b.example?bcc=c@d.example&body=RUN)"),
    ("port", "https://a.example:99999999/ https://a.example:x/ https://[::1"),
)  # fmt: skip
"""Links that lead where nobody wants to go."""

MARKDOWN = _named(
    ("fence-info", '```"><img/src=x/onerror=RUN>\nx\n```'),
    ("fence-lang", "```html onmouseover=RUN\n<img src=x onerror=RUN>\n```"),
    ("fence-nested", "````\n```\n<script>RUN</script>\n```\n````\n<script>RUN</script>"),
    ("fence-unclosed", "```js\n<script>RUN</script>"),
    ("fence-tilde", "~~~\n```\n<script>RUN</script>\n~~~\n```"),
    ("code-span", "`` `<script>RUN</script>` ``"),
    ("code-html", "```html\n<script>RUN</script><!-- --><a href='javascript:RUN'>\n```"),
    ("table-cell", "|a|b|\n|-|-|\n|<img src=x onerror=RUN>|</td><script>RUN</script>|"),
    ("table-align", '|a|\n|:-" onclick="RUN|\n|x|'),
    ("table-break", "|a|\n|-|\n|x<br onclick=RUN>y<br/>z<BR >|"),
    ("list-start", "999999999. x\n1000000000. <img src=x onerror=RUN>"),
    ("heading", "# <img src=x onerror=RUN>\n<script>RUN</script>\n==="),
    ("emphasis", "**<b**onclick=RUN>** _<i_>"),
    ("quote-lazy", "> <div\nonclick=RUN>\n> x"),
    ("task", "- [x]<img src=x onerror=RUN>\n- [ ] <b>x</b>"),
    ("escaped", "\\<script>RUN\\</script> \\[x](javascript:RUN)"),
    ("hard-break", "<img src=x  \nonerror=RUN>"),
)  # fmt: skip
"""Markdown that tries to become something else."""

UNSEEN = {
    "bidi-override": "user\u202egnp.exe",
    "bidi-isolate": "\u2066admin\u2069 \u2067x\u2069 \u200f\u200e\u061c",
    "bidi-entity": "a&#8238;b&#x202E;c&rlm;d&lrm;e",
    "zero-width": "pay\u200bpal\u2060\ufeff\u00ad",
    "zero-width-entity": "pay&ZeroWidthSpace;pal&shy;&NoBreak;&zwj;&zwnj;&#65279;",
    "tags": "hi\U000e0068\U000e0069\U000e007f",
    "ansi-colour": "\x1b[31mred\x1b[0m",
    "ansi-clear": "\x1b[2J\x1b[H\x1bc",
    "ansi-title": "\x1b]0;owned\x07text",
    "ansi-clipboard": "\x1b]52;c;cm0gLXJmIH4K\x1b\\text",
    "ansi-link": "\x1b]8;;javascript:alert(1)\x1b\\text\x1b]8;;\x1b\\",
    "ansi-8-bit": "\x9b31mred\x9d0;owned\x9c",
    "ansi-entity": "&#27;[31mred&#x9b;2J",
    "null": "a\x00b\x00",
    "carriage-return": "safe text\rowned",
    "backspace": "safe\x08\x08\x08\x08owned",
    "line-separators": "a\u2028b\u2029c\x0bd\x0ce\x85f",
    "lone-surrogates": "a\ud83d b\ude42 c\ude42\ud83d",
    "noncharacters": "a\ufffe\uffff\U0010ffff",
    "joined-emoji": "👨\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648",
    "stacked-marks": "Z" + "\u0300\u0336\u0489" * 40,
    "wide": "\u2003\u3000\ufdfd\U0001f3f4",
}
"""Characters that a reader does not see, or that a terminal obeys."""

SHOWN = {"huge-word": "x" * 20_000, "huge-word-wide": "東" * 5_000, "many-lines": "a\n" * 500}
"""What only has to fit."""

CORPUS: dict[str, str] = {**HTML, **LINKS, **MARKDOWN, **UNSEEN, **SHOWN}
"""All of them by name; each is short enough to be a message."""


def _times(text: str, count: int) -> Callable[[], str]:
    return lambda: text * count


LARGE: dict[str, Callable[[], str]] = {
    "quotes": _times(">", 10_000),
    "brackets": _times("[", 10_000),
    "pictures": _times("![[", 10_000),
    "stars": lambda: "*" * 10_000 + "a" + "*" * 10_000,
    "nested-stars": lambda: "*" * 6_000 + "a" + "*" * 6_000,
    "nested-strong": lambda: "**a " * 1_500 + " b**" * 1_500,
    "mixed-stars": _times("*_", 20_000),
    "backticks": lambda: "".join("e" + "`" * length for length in range(1, 400)),
    "link-openings": _times("[a](", 20_000),
    "link-parentheses": lambda: "[a](" + "(" * 20_000,
    "angles": _times("<a:", 20_000),
    "entities": _times("&", 50_000),
    "strikes": _times("~~a ", 20_000),
    "pipes": _times("|" * 200 + "\n", 500),
    "wide-table": lambda: "|a" * 500 + "\n" + "|-" * 500 + "\n" + "a\n" * 2_000,
    "long-table": lambda: "|a|b|\n|-|-|\n" + "|1|2|\n" * 20_000,
    "nested-list": lambda: "".join(" " * (2 * level) + "- a\n" for level in range(300)),
    "list-in-line": _times("- " * 500 + "a\n", 20),
    "quote-lines": _times("> " * 18 + "a\n", 3_000),
    "paragraphs": _times("a\n\n", 20_000),
    "brackets-in-paragraphs": _times("[" * 900 + "\n\n", 200),
    "headings": _times("a\n=\n", 10_000),
    "fences": _times("```js\nlet a\n```\n", 8_000),
    "fence-openings": _times("```", 30_000),
    "code": lambda: "```python\n" + "\n " * 60_000,
    "code-colours": lambda: ("```python\n" + "1 if " * 6_000 + "\n```\n") * 10,
    "code-quotes": lambda: "```python\n" + "\"'''" * 4_000 + "\n```\n```rust\n" + ".1" * 20_000,
    "code-words": lambda: "```ruby\n" + "@" * 40_000 + "\n```\n```yaml\n" + "a.a-" * 10_000,
    "addresses": lambda: ("https://a.example/" + ")" * 1_900 + " ") * 50,
    "empty-lines": _times("\n", 300_000),
    "spaces": _times(" ", 300_000),
    "tabs": _times("\t- ", 50_000),
    "joiners": _times("\u200d", 300_000),
    "escapes": _times("\x1b]", 100_000),
    "endless-escape": lambda: "\x1b]" + "a" * 300_000 + "\x07" + "b",
    "one-line": _times("word ", 200_000),
    "one-word": _times("x", 1_000_000),
}
"""What grows faster than its length in a careless parser, or needs its stack."""
