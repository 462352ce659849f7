"""The figures of the texts have the numbers of the texts."""

import math
from fractions import Fraction

import pytest

from discreet import DiscreteLaplace, InvalidParameter, Laplace
from discreet.show.figures.laws import attacker, densities, loss, slide
from released import data_in


def test_the_densities_are_those_of_four_scales():
    data = data_in(densities())
    peaks = {row["scale"]: row["density"] for row in data if row["noise"] == 0}
    assert peaks == pytest.approx(
        {"λ = 1": 1 / 2, "λ = 2": 1 / 4, "λ = 4": 1 / 8, "λ = 7": 1 / 14}, abs=1e-15
    )
    for row in data:
        scale = int(row["scale"].removeprefix("λ = "))
        assert row["density"] == pytest.approx(
            math.exp(-abs(row["noise"]) / scale) / (2 * scale), rel=1e-12
        )


def test_the_discrete_densities_are_the_probabilities_of_the_noise_that_is_drawn():
    data = data_in(densities(scales=(1, "7/2"), law="discrete"))
    for name, scale in (("λ = 1", 1), ("λ = 3.5", Fraction(7, 2))):
        chances = {row["noise"]: row["density"] for row in data if row["scale"] == name}
        assert chances == {k: DiscreteLaplace(scale).pmf(k) for k in range(-8, 9)}
    with pytest.raises(InvalidParameter, match="at most 90 for the discrete law"):
        densities(scales=(100,), law="discrete")
    with pytest.raises(InvalidParameter, match="law must be 'continuous' or 'discrete'"):
        densities(law="gaussian")


LOSSES = [
    ({}, "too small: λ = 0.5"),
    ({"epsilon": "1/2", "sensitivity": 3, "scale": 1}, "too small: λ = 1"),
    ({"epsilon": 2, "sensitivity": 5, "scale": 4}, "larger: λ = 4"),
    ({"epsilon": "1/3", "sensitivity": 2, "scale": "1/2"}, "too small: λ = 0.5"),
]


@pytest.mark.parametrize("law", ["continuous", "discrete"])
@pytest.mark.parametrize(("options", "wrong"), LOSSES)
def test_the_ratio_is_that_of_the_two_laws_and_the_loss_its_logarithm(law, options, wrong):
    data = data_in(loss(law=law, **options))
    kind = Laplace if law == "continuous" else DiscreteLaplace
    chance = "pdf" if law == "continuous" else "pmf"
    given = {"epsilon": 1, "sensitivity": 1, "scale": "1/2", **options}
    delta = given["sensitivity"]
    right = delta / Fraction(given["epsilon"])
    names = {f"right: λ = Δ/ε = {float(right):.4g}": right, wrong: Fraction(given["scale"])}
    assert {row["scale"] for row in data if "ratio" in row} == set(names)
    for row in data:
        if "ratio" in row:
            noise = kind(names[row["scale"]])
            first = getattr(noise, chance)(row["output"])
            second = getattr(noise, chance)(row["output"] - delta)
            assert row["ratio"] == pytest.approx(first / second, rel=1e-9)
            assert row["loss"] == pytest.approx(math.log(row["ratio"]), abs=1e-12)


@pytest.mark.parametrize("law", ["continuous", "discrete"])
@pytest.mark.parametrize(("options", "wrong"), LOSSES)
def test_the_tail_is_the_probability_of_a_larger_loss_summed_output_by_output(law, options, wrong):
    """A plain sum of probabilities, or of thin slices, at every t that is drawn but the steps."""
    data = data_in(loss(law=law, **options))
    given = {"sensitivity": 1, "scale": "1/2", **options}
    delta, scale = given["sensitivity"], Fraction(given["scale"])
    if law == "discrete":
        noise = DiscreteLaplace(scale)
        far = math.ceil(40 * scale)
        weights = {y: noise.pmf(y) for y in range(-far, far + delta)}
    else:
        slices, far = 20_000, 20 * float(scale)
        middles = [(step + 0.5) / slices * 2 * far - far for step in range(slices)]
        weights = {
            y: math.exp(-abs(y) / float(scale)) / (2 * float(scale)) * 2 * far / slices
            for y in middles
        }
    losses = [(abs(y - delta) - abs(y)) / float(scale) for y in weights]
    rows = [row for row in data if "tail" in row and row.get("scale") == wrong]
    assert len(rows) > 2
    steps = {delta / float(scale)} if law == "continuous" else {round(one, 9) for one in losses}
    drawn = [row for row in rows if not any(abs(row["loss"] - step) < 1e-6 for step in steps)]
    assert drawn
    for row in drawn[:: max(1, len(drawn) // 20)]:
        larger = sum(
            weight
            for weight, one in zip(weights.values(), losses, strict=True)
            if one > row["loss"]
        )
        assert row["tail"] == pytest.approx(larger, abs=2e-3 if law == "continuous" else 1e-9)
    for at in steps:
        pair = [row["tail"] for row in rows if abs(row["loss"] - at) < 1e-6]
        if pair:  # both ends of the step
            reached = sum(
                weight
                for weight, one in zip(weights.values(), losses, strict=True)
                if one > at - 1e-6
            )
            larger = sum(
                weight
                for weight, one in zip(weights.values(), losses, strict=True)
                if one > at + 1e-6
            )
            assert pair == pytest.approx([reached, larger], abs=2e-3)


def test_the_right_scale_never_exceeds_epsilon_and_the_wrong_one_as_often_as_the_figure_says():
    """Half the scale at Δ = ε = 1: 1 − e^(−1/2)/2 by hand; in the discrete law at Δ = 2 the outputs
    up to 0.
    """
    assert "69.7 % beyond ε" in str(loss().to_dict())
    assert 1 - math.exp(-1 / 2) / 2 == pytest.approx(0.697, abs=5e-4)
    assert "73.1 % beyond ε" in str(loss(sensitivity=2, law="discrete").to_dict())
    assert 1 / (1 + math.exp(-1)) == pytest.approx(0.731, abs=5e-4)
    for law in ("continuous", "discrete"):
        for scale in (2, 3):
            text = str(loss(epsilon="1/2", scale=scale, law=law).to_dict())
            assert "the loss never exceeds ε = 0.5" in text
            assert "beyond ε'" not in text
        rows = [row for row in data_in(loss(epsilon="1/2", law=law)) if "tail" in row]
        right = [row for row in rows if row.get("scale", "").startswith("right")]
        assert max(row["loss"] for row in right if row["tail"] > 0) == 0.5
        assert [row["tail"] for row in right if row["loss"] == 0.5][-1] == 0


def test_losses_that_cannot_be_drawn_are_refused():
    for options, sentence in [
        ({"law": "gaussian"}, "law must be 'continuous' or 'discrete'"),
        ({"law": "discrete", "sensitivity": "1/2"}, "whole number"),
        ({"law": "discrete", "epsilon": "0.001"}, "at most 90"),
        ({"epsilon": 1000}, "at most 100"),
        ({"scale": "0.001"}, "sensitivity/scale must be at most 100"),
        ({"scale": 0}, "scale must be positive"),
    ]:
        with pytest.raises(InvalidParameter, match=sentence):
            loss(**options)


def test_an_attacker_has_a_limit_for_each_relation():
    rows = [row for row in data_in(attacker(largest=4)) if "limit" in row]
    names = dict.fromkeys(row["limit"] for row in rows)
    once, twice = names
    assert "change-one; add-remove, presence" in once
    assert "add-remove, a value" in twice
    for row in rows:
        odds = math.exp((1 if row["limit"] == once else 2) * row["epsilon"])
        assert row["rate"] == pytest.approx(odds / (1 + odds), rel=1e-12)
    with pytest.raises(InvalidParameter, match="at most 350"):
        attacker(largest=400)


def test_scales_may_be_written_as_text_and_must_be_few():
    assert {row["scale"] for row in data_in(densities(scales="1/2, 3"))} == {"λ = 0.5", "λ = 3"}
    for scales, sentence in [
        ((), "one to 5 numbers, got 0"),
        (range(1, 7), "got 6"),
        ((0,), "must be positive"),
    ]:
        with pytest.raises(InvalidParameter, match=sentence):
            densities(scales=scales)


@pytest.mark.parametrize("law", ["continuous", "discrete"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("1/2", 2), (3, 1), ("0.1", 1)])
def test_the_ratio_of_sliding_curves_reaches_the_limits_and_never_leaves_them(
    law, epsilon, sensitivity
):
    limit = math.exp(eval(epsilon) if isinstance(epsilon, str) else epsilon)  # noqa: S307
    ratios = [
        row["ratio"]
        for row in data_in(slide(epsilon=epsilon, sensitivity=sensitivity, law=law))
        if "ratio" in row
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
    pairs = [
        row
        for row in data_in(slide(epsilon="1/2", sensitivity=2, law="discrete"))
        if "ratio" in row
    ]
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
