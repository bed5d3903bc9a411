"""What the languages look like whose code gets colours.

Every pattern that begins to match also ends: a string or comment that is left open goes on to the
end of its line or of the code. So no code is looked at twice, and time grows with length only.
"""

from __future__ import annotations

from typing import NamedTuple

_DOUBLE = r'"(?:[^"\\\n]|\\(?s:.))*+"?'
_SINGLE = r"'(?:[^'\\\n]|\\(?s:.))*+'?"
_BACKTICKS = r"`(?:[^`\\]|\\(?s:.))*+`?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n]{1,8}?)'"
_DOUBLED = r"'[^']*+'?"
_TRIPLE = r"(?:\"\"\"(?s:.*?)(?:\"\"\"|\Z)|'''(?s:.*?)(?:'''|\Z))"
_PREFIX = r"(?:(?<!\w)[bBfFrRuUtT]{1,2})?"
_SLASHES = r"//[^\n]*+"
_BLOCK = r"/\*(?s:.*?)(?:\*/|\Z)"
_HASH = r"\#[^\n]*+"
_SPACED_HASH = r"(?<!\S)\#[^\n]*+"
_DASHES = r"--[^\n]*+"
_VARIABLE = r"\$(?:\w++|\{[^}\n]*+\}?)"
NUMBER = r"(?<![\w.])(?:0[xXbBoO][\da-fA-F_]++|\d[\d_]*+(?:\.\d[\d_]*+)?(?:[eE][+-]?\d++)?)\w*+"
DEFINING = frozenset(
    {"class", "def", "enum", "fn", "fun", "func", "function", "impl", "interface", "macro"}
    | {"module", "namespace", "package", "proc", "protocol", "record", "struct", "sub", "trait"}
    | {"type"}
)
"""The word after one of these is the name of something."""


class Language(NamedTuple):
    comments: str
    strings: str
    words: str = ""
    names: str = r"(?!)"
    """Patterns that get the colour of a name."""
    word: str = r"[^\W\d]\w*+"
    any_case: bool = False
    keys: str = ""
    """What follows a word or string that is a key."""


_C = f"{_BLOCK}|{_SLASHES}"
_C_STRINGS = f"{_DOUBLE}|{_SINGLE}"
_C_WORDS = (
    "auto bool break case char const continue default do double else enum extern false float for"
    " goto if inline int long new null register return short signed sizeof static struct switch"
    " this true typedef union unsigned void volatile while "
)
_OBJECT_WORDS = (
    "abstract as async await catch class explicit export final finally import instanceof interface"
    " internal is namespace operator override package private protected public sealed super"
    " template throw throws try using var virtual yield "
)
LANGUAGES = {
    "bash sh shell zsh console shell-session terminal": Language(
        _SPACED_HASH,
        rf"{_DOUBLE}|{_DOUBLED}",
        "break case cd continue do done echo elif else esac eval exec exit export false fi for"
        " function if in local read return set shift source sudo test then trap true until while",
        _VARIABLE,
        word=r"[^\W\d][\w-]*+",
    ),
    "c h": Language(_C, _C_STRINGS, _C_WORDS + "NULL", r"(?m:^)[ \t]{0,20}\#[ \t]{0,20}\w++"),
    "cpp c++ cc hpp cxx": Language(
        _C,
        _C_STRINGS,
        _C_WORDS + _OBJECT_WORDS + "concept constexpr decltype delete friend nullptr requires"
        " static_cast typename",
        r"(?m:^)[ \t]{0,20}\#[ \t]{0,20}\w++",
    ),
    "csharp c# cs java kotlin kt scala swift dart": Language(
        _C,
        f"{_TRIPLE}|{_C_STRINGS}",
        _C_WORDS + _OBJECT_WORDS + "boolean byte data def defer extends extension fallthrough"
        " foreach fun func get given guard implements implicit in init lazy let lock match mut"
        " native nil object open out protocol readonly record ref repeat self string strictfp"
        " suspend switch synchronized trait transient typealias unit val when where with",
        r"@\w++",
    ),
    "css scss less": Language(
        _BLOCK, _C_STRINGS, "important", r"@[\w-]++", word=r"[^\W\d][\w-]*+", keys=":"
    ),
    "docker dockerfile make makefile cmake": Language(
        _SPACED_HASH,
        _C_STRINGS,
        "add arg cmd copy define else endef endif entrypoint env expose from healthcheck ifdef"
        " ifeq ifndef ifneq include label maintainer onbuild run shell stopsignal user volume"
        " workdir",
        rf"{_VARIABLE}|\$\(\w++\)|(?m:^)[\w./%-]++(?=:)",
        any_case=True,
    ),
    "go golang": Language(
        _C,
        f"{_DOUBLE}|{_BACKTICKS}|{_CHARACTER}",
        "any bool break byte case chan const continue default defer else error fallthrough false"
        " float64 for func go goto if import int int64 interface iota make map new nil package"
        " range return rune select string struct switch true type var",
    ),
    "html htm xml svg vue": Language(
        r"<!--(?s:.*?)(?:-->|\Z)",
        r"(?<==)(?:\"[^\"]*+\"?|'[^']*+'?)",
        word=r"[^\W\d][\w:-]*+",
        keys="=",
    ),
    "ini cfg toml properties": Language(
        rf"(?m:^)[ \t]{{0,20}};[^\n]*+|{_SPACED_HASH}",
        f"{_TRIPLE}|{_DOUBLE}|{_SINGLE}",
        "true false yes no on off",
        r"(?m:^)\[[^\]\n]*+\]?",
        word=r"[^\W\d][\w.-]*+",
        keys="=",
    ),
    "javascript js jsx mjs node typescript ts tsx": Language(
        _C,
        f"{_DOUBLE}|{_SINGLE}|{_BACKTICKS}",
        "abstract any as async await boolean break case catch class const continue debugger declare"
        " default delete do else enum export extends false finally for from function get if"
        " implements import in instanceof interface keyof let namespace never new null number of"
        " private protected public readonly return set static string super switch this throw true"
        " try type typeof undefined unknown var void while with yield",
        r"@\w++",
    ),
    "json jsonl json5 jsonc": Language(_C, _DOUBLE, "true false null", keys=":"),
    "julia jl": Language(
        r"\#=(?s:.*?)(?:=\#|\Z)|" + _HASH,
        f"{_TRIPLE}|{_DOUBLE}|{_CHARACTER}",
        "abstract baremodule begin break catch const continue do else elseif end export false"
        " finally for function global if import in isa let local macro module mutable nothing"
        " primitive quote return struct true try type using where while",
        r"@\w++",
    ),
    "lua": Language(
        rf"--\[\[(?s:.*?)(?:\]\]|\Z)|{_DASHES}",
        _C_STRINGS,
        "and break do else elseif end false for function goto if in local nil not or repeat return"
        " then true until while",
    ),
    "php": Language(
        f"{_C}|{_HASH}",
        _C_STRINGS,
        _C_WORDS + _OBJECT_WORDS + "and array echo elseif endforeach endif extends fn foreach"
        " function global implements include isset match or print require self trait unset use",
        r"\$\w++|<\?php|\?>",
    ),
    "python py python3 ipython ipython3 pycon py3": Language(
        _HASH,
        f"{_PREFIX}{_TRIPLE}|{_PREFIX}{_DOUBLE}|{_PREFIX}{_SINGLE}",
        "and as assert async await break case class continue def del elif else except False finally"
        " for from global if import in is lambda match None nonlocal not or pass raise return True"
        " try type while with yield",
        r"@[\w.]++|(?m:^)%%?\w++",
    ),
    "r": Language(
        _HASH,
        f"{_DOUBLE}|{_SINGLE}|{_BACKTICKS}",
        "break else FALSE for function if in Inf library NA NaN next NULL repeat return TRUE while",
        word=r"[^\W\d][\w.]*+",
    ),
    "ruby rb": Language(
        _SPACED_HASH,
        f"{_DOUBLE}|{_SINGLE}",
        "alias and begin break case class def defined do else elsif end ensure false for if in"
        " module next nil not or puts raise redo require rescue retry return self super then true"
        " undef unless until when while yield",
        r"[@$]{1,2}\w++|(?<![\w:]):\w++",
    ),
    "rust rs": Language(
        _C,
        f"{_DOUBLE}|{_CHARACTER}",
        "as async await bool break const continue crate dyn else enum extern f64 false fn for i32"
        " i64 if impl in let loop match mod move mut pub ref return self Self static str String"
        " struct super trait true type u8 unsafe use usize where while",
        r"(?<!\w)\w++!(?!=)|\#!?\[[^\]\n]*+\]?",
    ),
    "sql sqlite postgresql postgres mysql": Language(
        f"{_DASHES}|{_BLOCK}",
        rf"{_DOUBLED}|{_DOUBLE}|{_BACKTICKS}",
        "add all alter and as asc avg begin between by case cast check coalesce column commit count"
        " create cross date default delete desc distinct drop else end except exists false foreign"
        " from full group having if in index inner insert int integer intersect into is join key"
        " left like limit max min not null offset on or order outer over partition primary"
        " references replace returning right rollback row rows select set sum table text then true"
        " union unique update using values varchar view when where window with",
        any_case=True,
    ),
    "yaml yml": Language(
        _SPACED_HASH,
        f"{_DOUBLE}|{_DOUBLED}",
        "true false null yes no on off",
        r"[&*!]\w++",
        word=r"[^\W\d][\w./-]*+",
        keys=":",
    ),
}
"""By the names that people write after a fence."""
MARKUP = frozenset({"html", "htm", "xml", "svg", "vue"})
