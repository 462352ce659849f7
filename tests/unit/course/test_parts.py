"""What a part says is the same for the same answer, and three significant digits are enough."""

import math
from fractions import Fraction

import pytest

from discreet.course.parts import Bound, Finding, Formula, Number, Verdict, agrees


@pytest.mark.parametrize("wanted", [1.0, 9.99, 20.0, 181.06, 0.00731, 1e-9, 123456.0, -5.0])
def test_a_number_that_is_rounded_to_three_digits_agrees_and_one_that_is_rounded_to_two_may_not(
    wanted,
):
    assert agrees(float(f"{wanted:.3g}"), wanted)
    assert agrees(wanted, wanted)
    unit = 10.0 ** (math.floor(math.log10(abs(wanted))) - 2)
    assert not agrees(wanted + 0.51 * unit, wanted)
    assert not agrees(wanted - 0.51 * unit, wanted)


def test_people_may_be_rounded_up():
    assert Number(name="n", wanted=14.14, rounded=True).judge(15) == ""
    assert Number(name="n", wanted=14.14).judge(15) != ""
    assert Number(name="n", wanted=14.14, rounded=True).judge(16) != ""


def test_a_formula_is_compared_at_every_point():
    formula = Formula(
        name="f", arguments=("x",), wanted=lambda x: x**2, points=((1,), (2,), (Fraction(1, 2),))
    )
    assert formula.judge("x^2") == ""
    assert formula.judge(lambda x: x) == "not yet; 2 is wrong at x = 2"
    assert formula.judge("2x") != ""
    assert formula.judge(lambda x: 2 * x**2) == "not yet; it is off by a factor of 2"
    assert isinstance(formula.at(None), Formula)
    number = formula.at("3/2")
    assert isinstance(number, Number)
    assert number.wanted == 2.25


def test_a_bound_that_is_just_too_small_or_just_too_large_is_refused():
    def union(y, d, scale):
        return min(1, d * math.exp(-y / scale))

    bound = Bound(name="max_tail")
    assert bound.judge(union) == ""
    assert "(2b)" in bound.judge(lambda y, d, scale: 0.99 * union(y, d, scale))
    assert "(2c)" in bound.judge(lambda y, d, scale: union(y / 1.01, d, scale))


def test_a_verdict_has_a_line_for_each_part():
    parts = [Finding(part="a", words=""), Finding(part="b", words="still to fill in")]
    assert (
        repr(Verdict(exercise="X", findings=tuple(parts))) == "X, a: right\nX, b: still to fill in"
    )
    assert repr(Verdict(exercise="X", findings=(parts[0],))) == "X: right"
    assert Verdict(exercise="X", findings=(parts[0],)).right
