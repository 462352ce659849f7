"""The figures of the texts have the numbers of the texts."""

import math

import pytest

from discreet import DiscreteLaplace, InvalidParameter
from discreet.show.figures.laws import densities, slide
from released import data_in


def test_the_densities_are_those_of_four_scales():
    data = data_in(densities())
    peaks = {row["scale"]: row["density"] for row in data if row["noise"] == 0}
    assert peaks == pytest.approx({"λ = 1": 1 / 2, "λ = 2": 1 / 4, "λ = 4": 1 / 8, "λ = 7": 1 / 14}, abs=1e-15)
    for row in data:
        scale = int(row["scale"].removeprefix("λ = "))
        assert row["density"] == pytest.approx(math.exp(-abs(row["noise"]) / scale) / (2 * scale), rel=1e-12)


def test_scales_may_be_written_as_text_and_must_be_few():
    assert {row["scale"] for row in data_in(densities(scales="1/2, 3"))} == {"λ = 0.5", "λ = 3"}
    for scales, sentence in [((), "one to 5 numbers, got 0"), (range(1, 7), "got 6"), ((0,), "must be positive")]:
        with pytest.raises(InvalidParameter, match=sentence):
            densities(scales=scales)


@pytest.mark.parametrize("law", ["continuous", "discrete"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("1/2", 2), (3, 1), ("0.1", 1)])
def test_the_ratio_of_sliding_curves_reaches_the_limits_and_never_leaves_them(law, epsilon, sensitivity):
    limit = math.exp(eval(epsilon) if isinstance(epsilon, str) else epsilon)  # noqa: S307
    ratios = [
        row["ratio"] for row in data_in(slide(epsilon=epsilon, sensitivity=sensitivity, law=law)) if "ratio" in row
    ]
    assert max(ratios) == pytest.approx(limit, rel=1e-12)
    assert min(ratios) == pytest.approx(1 / limit, rel=1e-12)


@pytest.mark.parametrize("law", ["continuous", "discrete"])
def test_the_ratio_is_that_of_the_two_curves(law):
    data = data_in(slide(epsilon="1/2", sensitivity=2, law=law))
    pairs = [row for row in data if "ratio" in row]
    assert len(pairs) > 30
    for row in pairs:
        assert row["first"] / row["second"] == pytest.approx(row["ratio"], rel=1e-9)


def test_the_discrete_curve_is_the_law_that_is_drawn():
    law = DiscreteLaplace(4)
    pairs = [row for row in data_in(slide(epsilon="1/2", sensitivity=2, law="discrete")) if "ratio" in row]
    assert [row["first"] for row in pairs] == [law.pmf(row["output"]) for row in pairs]
    assert [row["second"] for row in pairs] == [law.pmf(row["output"] - 2) for row in pairs]


def test_slides_that_cannot_be_drawn_are_refused():
    for options, sentence in [
        ({"law": "gaussian"}, "law must be 'continuous' or 'discrete'"),
        ({"law": "discrete", "sensitivity": "1/2"}, "whole number"),
        ({"law": "discrete", "epsilon": "0.001"}, "at most 49"),
        ({"epsilon": 1000}, "at most 100"),
        ({"width": 0}, "width must be a whole number"),
    ]:
        with pytest.raises(InvalidParameter, match=sentence):
            slide(**options)
