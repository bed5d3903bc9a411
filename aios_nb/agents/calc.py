"""Arithmetic as people type it, computed exactly where that makes sense, and always in bounds.

Text → tokens → Python's own parser → a walk over the few kinds of node that are arithmetic. Nothing
is ever evaluated by Python itself. Numbers are fractions until a root or a logarithm makes them
floats, so 0.1 + 0.2 is 0.3.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from aios_nb.errors import AgentFailed

Number = Fraction | float

TEXT_LIMIT = 1000
DEPTH_LIMIT = 60
DIGITS_LIMIT = 4000
"""Digits of any number on the way; also what Python turns into text without complaint."""
BITS_LIMIT = int(DIGITS_LIMIT * math.log2(10))
FACTORIAL_LIMIT = 1000
ROUND_LIMIT = 100
_DECIMALS = 15
_USAGE = 'for example "2 * (3 + 4)", "sqrt(2)", "15% of 240"'

_OPENING = re.compile(
    r"^\W*(please\s+)?(what\s+is|what's|whats|how\s+much\s+is|calculate|compute|evaluate|calc)\b"
)
_WORDS = [
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"\bplus\b", "+"),
        (r"\bminus\b", "-"),
        (r"\b(times|multiplied by)\b", "*"),
        (r"(?<=[\d)\s])x(?=[\s(\d])", "*"),
        (r"\bdivided by\b", "/"),
        (r"\bto the power of\b", "**"),
        (r"\bsquared\b", "**2"),
        (r"\bcubed\b", "**3"),
        (r"\bmod\b", " % "),
        (r"\bof\b", "*"),
    )
]
_SIGNS = str.maketrans(
    {
        "\N{MULTIPLICATION SIGN}": "*",
        "\N{MIDDLE DOT}": "*",
        "\N{DOT OPERATOR}": "*",
        "\N{DIVISION SIGN}": "/",
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "\N{GREEK SMALL LETTER PI}": "pi",
        "\N{GREEK SMALL LETTER TAU}": "tau",
        "^": "**",
    }
)
_TOKEN = re.compile(
    r"(?P<number>[0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?)"
    r"|(?P<name>[a-z][a-z0-9]*)"
    r"|(?P<sign>\*\*|//|[-+*/%(),!])"
)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?")

_CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}


def calculate(text: str) -> tuple[str, int | float]:
    """The value as text for people and as a number; ``AgentFailed`` in one line otherwise."""
    if len(text) > TEXT_LIMIT:
        raise AgentFailed(f"the expression has {len(text)} characters; {TEXT_LIMIT} fit")
    source = " ".join(_tokens(_spoken(text)))
    if not source:
        raise AgentFailed("there is nothing to calculate", hint=_USAGE)
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise AgentFailed("this is not a complete expression", hint=_USAGE) from None
    try:
        value = _bounded(_value(tree.body, source, 0))
        return _shown(value), _plain(value)
    except ZeroDivisionError:
        raise AgentFailed("division by zero") from None
    except OverflowError:
        raise _too_large() from None


# Text to tokens ------------------------------------------------------------------------


def _spoken(text: str) -> str:
    said = _OPENING.sub("", text.lower().translate(_SIGNS)).strip(" \t\r\n?=:;").rstrip(" ?=.:;")
    for pattern, sign in _WORDS:
        said = pattern.sub(sign, said)
    return said


def _tokens(said: str) -> list[str]:
    """What Python's parser should see: signs made plain, percent and factorial written out."""
    tokens: list[str] = []
    calls: list[bool] = []  # for each open bracket: is it a function's?
    at = 0
    while at < len(said):
        if said[at].isspace():
            at += 1
            continue
        in_call = bool(calls) and calls[-1]
        match = (None if in_call else _THOUSANDS.match(said, at)) or _TOKEN.match(said, at)
        if match is None:
            raise AgentFailed(f"{said[at]!r} is not arithmetic", hint=_USAGE)
        part = match[0]
        after_space = at > 0 and said[at - 1].isspace()
        at = match.end()
        last = tokens[-1] if tokens else ""
        if part == "(":
            calls.append(last in _FUNCTIONS)
        elif part == ")" and calls:
            calls.pop()
        if part == "%" and not after_space and re.match(r"\s*([-+*/),]|$)", said[at:]):
            _wrap_operand(tokens, "(", "/100)")
        elif part == "!":
            _wrap_operand(tokens, "factorial(", ")")
        else:
            if _ends_operand(last) and (part == "(" or part[0].isalnum()):
                if last[-1].isdigit() and part[0].isdigit():
                    raise AgentFailed(f"a sign is missing between {last} and {part}")
                tokens.append("*")  # 2pi, 3(4 + 5)
            tokens.append(_literal(part) if part[0] in "0123456789." else part)
    return tokens


def _ends_operand(token: str) -> bool:
    return bool(token) and (token[-1] == ")" or token[0] in "0123456789." or token in _CONSTANTS)


def _wrap_operand(tokens: list[str], before: str, after: str) -> None:
    """Put the operand that just ended between these."""
    if not tokens or not _ends_operand(tokens[-1]):
        raise AgentFailed("this is not a complete expression", hint=_USAGE)
    start = len(tokens) - 1
    depth = 0
    for at in range(len(tokens) - 1, -1, -1):
        depth += tokens[at].count(")") - tokens[at].count("(")
        start = at
        if depth <= 0:
            break
    if start and tokens[start] == "(" and tokens[start - 1] in _FUNCTIONS:
        start -= 1
    tokens[start:] = [before + " ".join(tokens[start:]) + after]


def _literal(token: str) -> str:
    number = token.replace(",", "").replace("_", "").lstrip("0")
    return number if number and number[0].isdigit() else "0" + number


# Tokens to a value ---------------------------------------------------------------------


def _value(node: ast.expr, source: str, depth: int) -> Number:
    if depth > DEPTH_LIMIT:
        raise AgentFailed("the expression is nested too deeply")
    rest: list[tuple[ast.operator, ast.expr]] = []
    while isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
        rest.append((node.op, node.right))  # a long sum is a long left arm, not deep nesting
        node = node.left
    value = _single(node, source, depth)
    for sign, right in reversed(rest):
        value = _bounded(_OPERATORS[type(sign)](value, _value(right, source, depth + 1)))
    return value


def _single(node: ast.expr, source: str, depth: int) -> Number:
    match node:
        case ast.Constant():
            return _number(source[node.col_offset : node.end_col_offset])
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(
                _power(_value(left, source, depth + 1), _value(right, source, depth + 1))
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, source, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, source, depth + 1)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            function, least, most = _FUNCTIONS[name]
            if not least <= len(args) <= most or any(isinstance(a, ast.Starred) for a in args):
                raise AgentFailed(f"{name} takes {_count(least, most)}, not {len(args)}")
            return _bounded(function(*(_value(arg, source, depth + 1) for arg in args)))
        case ast.Name(id=name) if name in _FUNCTIONS:
            raise AgentFailed(f"{name} needs brackets, as in {name}(2)")
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            known = ", ".join(sorted((*_FUNCTIONS, *_CONSTANTS)))
            raise AgentFailed(f"{name[:40]!r} is not known here", hint=f"known are {known}")
    raise AgentFailed("this is not arithmetic", hint=_USAGE)


def _number(literal: str) -> Number:
    exponent = literal.partition("e")[2]
    if exponent and abs(int(exponent)) > DIGITS_LIMIT:
        raise _too_large()
    return _bounded(Fraction(literal))


def _bounded(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _too_large()
        return value
    value = Fraction(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS_LIMIT:
        raise _too_large()
    return value


def _too_large() -> AgentFailed:
    return AgentFailed("the result is too large", hint=f"{DIGITS_LIMIT} digits at most")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if exponent < 0 and base == 0:
            raise ZeroDivisionError
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) != 1 and base != 0 and bits * abs(exponent) > BITS_LIMIT + bits:
            raise _too_large()  # before computing it: 9**9**9 would never end
        if abs(base) == 1:
            return base if exponent % 2 else Fraction(1)
        return Fraction(base ** int(exponent)) if base else Fraction(int(exponent == 0))
    if exponent == Fraction(1, 2):
        return _sqrt(base)
    if base < 0 and float(exponent) != int(exponent):
        raise AgentFailed("a negative number has no real power like that")
    return math.pow(base, exponent)


def _sqrt(value: Number) -> Number:
    if value < 0:
        raise AgentFailed("a negative number has no real square root")
    if isinstance(value, Fraction):
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _log(value: Number, base: Number = Fraction(10)) -> Number:
    if value <= 0 or base <= 0 or base == 1:
        raise AgentFailed("a logarithm needs a positive number, and a base other than 1")
    if base == 10:  # noqa: PLR2004 - exact for powers of ten
        return math.log10(value)
    return math.log2(value) / math.log2(base)


def _ln(value: Number) -> Number:
    if value <= 0:
        raise AgentFailed("a logarithm needs a positive number")
    return math.log(value)


def _factorial(value: Number) -> Number:
    whole = int(value)
    if whole != value or whole < 0:
        raise AgentFailed("factorial needs a whole number of at least 0")
    if whole > FACTORIAL_LIMIT:
        raise AgentFailed(f"factorial goes up to {FACTORIAL_LIMIT}")
    return Fraction(math.factorial(whole))


def _round(value: Number, digits: Number = Fraction(0)) -> Number:
    places = int(digits)
    if places != digits or abs(places) > ROUND_LIMIT:
        raise AgentFailed(f"round takes a whole number of digits up to {ROUND_LIMIT}")
    scale = Fraction(10) ** places
    nearest = math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))  # half away from zero
    return Fraction(nearest if value >= 0 else -nearest) / scale


def _wave(function: Callable[[float], float]) -> Callable[[Number], Number]:
    return lambda value: round(function(float(value)), _DECIMALS)  # sin(pi) is 0, not 1.2e-16


def _least(*values: Number) -> Number:
    return min(values)


def _most(*values: Number) -> Number:
    return max(values)


_MANY = 100
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "sqrt": (_sqrt, 1, 1),
    "sin": (_wave(math.sin), 1, 1),
    "cos": (_wave(math.cos), 1, 1),
    "tan": (_wave(math.tan), 1, 1),
    "log": (_log, 1, 2),
    "log2": (lambda value: _log(value, Fraction(2)), 1, 1),
    "log10": (_log, 1, 1),
    "ln": (_ln, 1, 1),
    "exp": (lambda value: math.exp(float(value)), 1, 1),
    "abs": (abs, 1, 1),
    "round": (_round, 1, 2),
    "floor": (lambda value: Fraction(math.floor(value)), 1, 1),
    "ceil": (lambda value: Fraction(math.ceil(value)), 1, 1),
    "min": (_least, 1, _MANY),
    "max": (_most, 1, _MANY),
    "factorial": (_factorial, 1, 1),
}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _count(least: int, most: int) -> str:
    if least == most:
        return "one value" if least == 1 else f"{least} values"
    return "values" if most == _MANY else f"{least} or {most} values"


# A value to text -----------------------------------------------------------------------


def _shown(value: Number) -> str:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(value.numerator)
        scaled = abs(value) * 10**_DECIMALS
        if scaled.denominator == 1:
            whole, part = divmod(scaled.numerator, 10**_DECIMALS)
            return f"{'-' if value < 0 else ''}{whole}.{part:0{_DECIMALS}d}".rstrip("0")
    return f"{float(value):.12g}"


def _plain(value: Number) -> int | float:
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return float(value)
