"""Arithmetic: right, exact, bounded, and never Python."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.agents.calc import DIGITS_LIMIT, FACTORIAL_LIMIT, TEXT_LIMIT, calculate
from aios_nb.errors import AgentFailed


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("2+2", "4"),
        ("what is 2+2?", "4"),
        ("What's 2 + 2 = ?", "4"),
        ("please calculate 3 * (4 + 5).", "27"),
        ("how much is 15% of 240", "36"),
        ("10%", "0.1"),
        ("5%*3", "0.15"),
        ("7 % 3", "1"),
        ("7 mod 3", "1"),
        ("2^10", "1024"),
        ("-2^2", "-4"),
        ("2^-1", "0.5"),
        ("2**3**2", "512"),
        ("0**0", "1"),
        ("(-1)^1000000001", "-1"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "0.333333333333"),
        ("-7/2", "-3.5"),
        ("7 // 2", "3"),
        ("1,234,567.5 * 2", "2469135"),
        ("max(1,200)", "200"),
        ("(2,345) + 1", "2346"),
        ("min(3, 1, 2)", "1"),
        ("6 ÷ 3 \N{MULTIPLICATION SIGN} 2 \N{MINUS SIGN} 1", "3"),
        ("2 x 3", "6"),
        ("3 plus 4 times 2", "11"),
        ("8 divided by 2 minus 1", "3"),
        ("5 squared", "25"),
        ("2 to the power of 5", "32"),
        ("5!", "120"),
        ("(2+3)!", "120"),
        ("3!!", "720"),
        ("factorial(20)", "2432902008176640000"),
        ("sqrt(16)", "4"),
        ("sqrt(1/4)", "0.5"),
        ("4^0.5", "2"),
        ("sqrt(2)", "1.41421356237"),
        ("sin(pi)", "0"),
        ("cos(0)", "1"),
        ("tan(0)", "0"),
        ("log(1000)", "3"),
        ("log(8, 2)", "3"),
        ("log2(8)", "3"),
        ("ln(e)", "1"),
        ("exp(0)", "1"),
        ("abs(-5)", "5"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.567, 2)", "2.57"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("2pi", "6.28318530718"),
        ("2π", "6.28318530718"),
        ("3(4+5)", "27"),
        ("tau/2", "3.14159265359"),
        ("1e3", "1000"),
        ("007", "7"),
        ("1_000", "1000"),
        (".5", "0.5"),
        ("+".join("1" * 500), "500"),
    ],
)
def test_arithmetic_as_people_type_it(asked, text):
    assert calculate(asked)[0] == text


def test_numbers_come_as_data_too():
    assert calculate("2+2")[1] == 4
    assert calculate("1/4")[1] == 0.25
    assert calculate("2^200")[1] == 2**200


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("", "nothing to calculate"),
        ("what is?", "nothing to calculate"),
        ("1/0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0^-1", "division by zero"),
        ("9**9**9", "too large"),
        ("9^9^9^9", "too large"),
        ("10^4001", "too large"),
        ("(1/9)^9999", "too large"),
        ("1e999999999", "too large"),
        ("1e-999999999", "too large"),
        ("exp(1000)", "too large"),
        ("10^4000/7", "too large"),
        (f"{FACTORIAL_LIMIT + 1}!", "goes up to 1000"),
        ("1000!*1000!", "too large"),
        ("2.5!", "whole number"),
        ("factorial(-1)", "whole number"),
        ("sqrt(-1)", "no real square root"),
        ("(-8)^(1/3)", "no real power"),
        ("log(0)", "positive number"),
        ("ln(-1)", "positive number"),
        ("log(5, 1)", "base other than 1"),
        ("round(1, 101)", "whole number of digits"),
        ("2 3", "a sign is missing"),
        ("2 +", "not a complete expression"),
        ("(1", "not a complete expression"),
        ("!", "not a complete expression"),
        ("hello", "'hello' is not known"),
        ("foo(1)", "'foo' is not known"),
        ("sqrt", "needs brackets"),
        ("sqrt(1, 2)", "sqrt takes one value"),
        ("log()", "log takes 1 or 2 values"),
        ("(1, 2)", "not arithmetic"),
        ("1 < 2", "'<' is not arithmetic"),
        ("x = 1", "not arithmetic"),
        ("[1]", "not arithmetic"),
        ("'a'", "not arithmetic"),
        ("__import__('os')", "not arithmetic"),
        ("().__class__", "not arithmetic"),
        ("lambda: 1", "not arithmetic"),
        ("1 if 1 else 2", "not"),
        ("max(*(1,2))", "not"),
        ("-" * 900 + "1", "nested too deeply"),
        ("(" * 400 + "1" + ")" * 400, "not a complete expression"),
        ("1" * (TEXT_LIMIT + 1), "1001 characters"),
    ],
)
def test_what_cannot_be_calculated_is_one_clear_line(asked, told):
    with pytest.raises(AgentFailed) as error:
        calculate(asked)
    assert told in error.value.message
    assert "\n" not in str(error.value)


@given(st.text(max_size=60))
def test_any_text_gives_a_number_or_one_line(text):
    try:
        shown, value = calculate(text)
    except AgentFailed as error:
        assert "\n" not in error.message  # noqa: PT017
    else:
        assert len(shown) <= DIGITS_LIMIT + 20
        assert isinstance(value, (int, float))


@given(st.text(alphabet="0123456789+-*/%^(),.!e pisqrtmaxlog", max_size=40))
def test_anything_like_arithmetic_ends_soon(text):
    try:
        calculate(text)
    except AgentFailed as error:
        assert "\n" not in error.message  # noqa: PT017


numbers = st.integers(0, 10**6).map(str) | st.decimals(0, 1000, places=3, allow_nan=False).map(str)
expressions = st.recursive(
    numbers,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=12,
)


@given(expressions)
def test_sums_and_products_are_exact(expression):
    exact = eval(re.sub(r"[0-9.]+", r"F('\g<0>')", expression), {"F": Fraction})
    assert calculate(expression)[1] == (exact.numerator if exact.denominator == 1 else float(exact))
