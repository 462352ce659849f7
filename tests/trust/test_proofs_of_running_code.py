"""TRUST 45: a certificate is about the code that runs. With half of its noise every statistic loses
it.

Each mutant halves the noise somewhere on the way of a release, from the scales of a design down to
the argument of the sampler; a choice that pays twice for each rank has half of its noise, too,
whether its rates, its unit or its costs double. The certificates of all statistics that the mutant
touches must be lost, `discreet verify` must fail, and all others must hold: a proof that fails for
any change would prove nothing.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import count
from unittest import mock

import pytest
from typer.testing import CliRunner

from discreet.ask.query import Moment
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.cli import app as cli
from discreet.draw import vector
from discreet.draw.coin import Logistic
from discreet.engines.integers import CellCounts
from discreet.errors import InvalidParameter
from discreet.files import answer_file
from discreet.release import laplace_mechanism as algorithm
from discreet.release import mechanism
from discreet.release.plan import Plan
from discreet.release.profiles import octaves
from discreet.release.question import _VALUES
from discreet.release.reports.design import ReportDesign
from discreet.release.statistics import counts, families, moments, ranks, response, tree
from discreet.release.tape import on_tape
from discreet.verify import certify, report

HALF = Fraction(1, 2)


@pytest.fixture(autouse=True)
def _scales_are_computed_anew():
    """A design keeps its scales, which do not know a mutant."""
    with mock.patch.object(families.JointDesign, "_known_scales", property(lambda _: {})):
        yield


def halved(module, name):
    """A function of scales, or of one, that gives half of them."""
    real = getattr(module, name)

    def wrong(*given):
        found = real(*given)
        return [scale * HALF for scale in found] if isinstance(found, list) else found * HALF

    return mock.patch.object(module, name, wrong)


def with_scale(module, name, at):
    """A function that is given half of its scale, or half of each of its scales."""
    real = getattr(module, name)

    def wrong(*given, **named):
        changed = list(given)
        changed[at] = (
            [one * HALF for one in given[at]] if isinstance(given[at], list) else given[at] * HALF
        )
        return real(*changed, **named)

    return mock.patch.object(module, name, wrong)


def with_scale_on_tape(module, name, at):
    """The same, only where a ledger keeps what is drawn."""
    real = getattr(module, name)

    def wrong(*given, **named):
        changed = list(given)
        halves = (
            [one * HALF for one in given[at]] if isinstance(given[at], list) else given[at] * HALF
        )
        changed[at] = halves if on_tape() else given[at]
        return real(*changed, **named)

    return mock.patch.object(module, name, wrong)


def with_shares_of_a_table(right=0):
    """Numbers that are drawn as if each had twice its ε, after so many parts that are right."""
    real, parts = Plan.numbers, count()

    def wrong(plan, fetched, cells):
        shares = (
            plan.shares
            if next(parts) < right
            else [replace(one, epsilon=2 * one.epsilon) for one in plan.shares]
        )
        return real(replace(plan, shares=tuple(shares)), fetched, cells)

    return mock.patch.object(Plan, "numbers", wrong)


def with_rates(module, name="choose_cells", factor=2):
    """A choice that pays so many times as much for each rank."""
    real = getattr(module, name)

    def wrong(counts, **given):
        return real(
            counts, **{**given, "over": given["over"] * factor, "under": given["under"] * factor}
        )

    return mock.patch.object(module, name, wrong)


def with_costs(wrong):
    """Costs of ranks that are made of a function and of the arguments of the right one."""
    return mock.patch.object(mechanism, "_cost_runs", partial(wrong, mechanism._cost_runs))


def doubled(real, *given):
    runs, firsts = real(*given)
    return replace(runs, exponents=2 * runs.exponents), firsts


def of_halved_denominators(real, groups, times, shift, shared, *given):
    """Every record counts twice, and the rank once."""
    return real(groups, times, shift, 2 * shared, *given)


def of_one_side(real, groups, times, shift, shared, above, _below, beyond):
    """Cells that end before the rank cost nothing."""
    return real(groups, times, shift, shared, above, 0, beyond)


def of_the_first_group(real, groups, *given):
    """All groups have the ranks of the first."""
    return real(CellCounts.of([groups[0]] * len(groups)), *given)


def with_a_handicap_of_rows():
    """A handicap that is larger by one for each value that records have."""
    real = mechanism.split_runs

    def wrong(runs, *given):
        split = real(runs, *given)
        split.exponents[1::2] += runs.sizes.size
        return split

    return mock.patch.object(mechanism, "split_runs", wrong)


def counted_twice():
    """Two records for each row, and a grid of brackets to which they go."""
    real = ranks._counts
    return mock.patch.object(
        ranks,
        "_counts",
        lambda *given: real(*given).map(lambda groups: [2 * counts for counts in groups]),
    )


MOMENTS = {"sum", "mean", "proportion", "variance", "std", "mean_and_std", "summary"}
SUMS = {"sum(", "avg(", "variance(", "stddev("}
RANKS = {"median", "quantile", "quantiles", "min", "max", "summary"}
ASKED_RANKS = {"median(", "quantile(", "min(", "max("}
MUTANTS = {
    "the scales of moments alone": (lambda: halved(moments.MomentDesign, "scales"), MOMENTS, SUMS),
    "the scales of counts": (lambda: with_scale(counts, "noisy_columns", 1), {"count"}, {"count("}),
    "the scales of moments": (lambda: with_scale(moments, "noisy_columns", 1), MOMENTS, SUMS),
    "the scale of a histogram": (
        lambda: with_scale(counts, "noisy_counts", 1),
        {"histogram", "value_counts"},
        set(),
    ),
    "the scale of a profile": (
        lambda: with_scale(octaves, "noisy_counts", 1),
        {"bounds", "profile"},
        set(),
    ),
    "the scales of joint questions": (
        lambda: halved(families.JointDesign, "scales"),
        {"joint question"},
        set(),
    ),
    "the scales of reports": (lambda: halved(ReportDesign, "scales"), {"report"}, set()),
    "the noise on totals": (
        lambda: with_scale(mechanism, "noisy_each", 1),
        MOMENTS | {"count", "joint question", "report"},
        SUMS | {"count("},
    ),
    "the sampler's argument": (
        lambda: with_scale(vector, "fill", 1),
        MOMENTS
        | {"count", "joint question", "report", "histogram", "value_counts", "cdf", "quantiles"}
        | {"bounds", "profile", "laplace_mechanism"},
        SUMS | {"count("},
    ),
    "the noise of a tree": (lambda: with_scale(tree, "noisy", 1), {"cdf", "quantiles"}, set()),
    "the rates of choices": (lambda: with_rates(ranks), RANKS, ASKED_RANKS),
    "the unit of choices": (
        lambda: mock.patch.object(
            mechanism, "choose", lambda gaps, unit, real=mechanism.choose: real(gaps, 2 * unit)
        ),
        RANKS,
        ASKED_RANKS,
    ),
    "the costs of ranks": (lambda: with_costs(doubled), RANKS, ASKED_RANKS),
    "the denominator of ranks": (lambda: with_costs(of_halved_denominators), RANKS, ASKED_RANKS),
    "the costs of one side": (lambda: with_costs(of_one_side), RANKS, ASKED_RANKS),
    "the ranks of another group": (lambda: with_costs(of_the_first_group), set(), ASKED_RANKS),
    "the handicaps of cells": (
        with_a_handicap_of_rows,
        {"median", "quantile", "quantiles", "summary"},
        set(),
    ),
    "the records of ranks": (counted_twice, RANKS, ASKED_RANKS),
    "the coin of a response": (
        lambda: mock.patch.object(response, "logistic", lambda epsilon: Logistic(2 * epsilon)),
        {"randomized_response"},
        set(),
    ),
    "the noise of Algorithm 1": (
        lambda: with_scale(algorithm, "noisy_into", 2),
        {"laplace_mechanism"},
        set(),
    ),
    "the noise of Algorithm 1 on numbers": (
        lambda: with_scale(algorithm, "noisy", 1),
        {"laplace_mechanism"},
        set(),
    ),
    "the noise of Algorithm 1 on a tape": (
        lambda: with_scale_on_tape(algorithm, "noisy_into", 2),
        {"laplace_mechanism"},
        set(),
    ),
    "the noise of arrays on a tape": (
        lambda: with_scale_on_tape(mechanism, "noisy_each", 1),
        MOMENTS | {"count"},
        set(),
    ),
    "the shares of a table": (
        with_shares_of_a_table,
        {"joint question"},
        SUMS | ASKED_RANKS | {"count("},
    ),
    **{
        f"UnitLimits.{name}": (lambda name=name: halved(UnitLimits, name), statistics, asked)
        for name, statistics, asked in (
            ("sum", {"sum"}, {"sum("}),
            ("mean", {"mean", "proportion"}, {"avg(", "joint question"}),
            (
                "variance",
                {"variance", "std", "mean_and_std", "summary"},
                {"variance(", "stddev(", "joint question"},
            ),
            ("ranks", {"median", "quantile", "quantiles", "summary"}, {"median(", "quantile("}),
            ("tree", {"cdf", "quantiles"}, set()),
            ("family", {"report"}, {"joint question"}),
        )
    },
}


@cache
def certificates():
    """Everything that the report certifies: its plans are made once, as they were before any
    mutant.
    """
    return list(report._certificates())


def lost(some=None) -> set[str]:
    """The certificates that do not hold, by name."""
    return {name for name, _, make in some or certificates() if not holds(make)}


def holds(make) -> bool:
    try:
        return make().holds
    except InvalidParameter:
        return False


def touched(name: str, mutant: str) -> bool:
    _, statistics, asked = MUTANTS[mutant]
    return name.partition(" of ")[0] in statistics or any(name.startswith(one) for one in asked)


def near(mutant: str) -> list:
    """What a mutant touches, and some of the rest."""
    rest = [one for one in certificates() if not touched(one[0], mutant)]
    return [*(one for one in certificates() if touched(one[0], mutant)), *rest[::8]]


def test_all_certificates_hold():
    assert lost() == set()


def test_every_statistic_is_halved_by_some_mutant():
    for name, _, _ in certificates():
        assert any(touched(name, mutant) for mutant in MUTANTS), name


@pytest.mark.parametrize("mutant", MUTANTS)
def test_with_half_of_its_noise_a_statistic_loses_its_certificate(mutant):
    patch, statistics, asked = MUTANTS[mutant]
    some = near(mutant)
    with patch():
        found = lost(some)
    assert all(touched(name, mutant) for name in found)
    assert {name.partition(" of ")[0] for name in found} >= statistics
    assert all(any(name.startswith(one) for name in found) for one in asked)


@pytest.mark.parametrize(
    "mutant",
    [
        *("the scales of counts", "the scale of a histogram", "the scales of reports"),
        *("the costs of ranks", "the ranks of another group", "the handicaps of cells"),
    ],
)
def test_with_half_of_its_noise_verify_fails(mutant):
    quick = dict.fromkeys(("subjects", "controls", "_replays"), mock.Mock(return_value=[]))
    with mock.patch.multiple(
        report, **quick, SHORT=[], _certificates=mock.Mock(return_value=near(mutant))
    ):
        right = CliRunner().invoke(cli.app, ["verify"])
        with MUTANTS[mutant][0]():
            wrong = CliRunner().invoke(cli.app, ["verify"])
    assert (right.exit_code, wrong.exit_code) == (0, 1)
    assert "✗" in wrong.output
    assert "SOMETHING IS WRONG" in wrong.output


def test_no_noise_at_all_is_no_proof():
    def silent(out, _scale, **_):
        out.fill(0)

    with (
        mock.patch.object(vector, "fill", silent),
        pytest.raises(InvalidParameter, match="noise on each"),
    ):
        certify("sum", bounds=(0, 1), epsilon=1)


def test_a_number_that_is_opened_without_noise_is_no_proof():
    real = moments.MomentDesign.estimate

    def leaking(self, exact, *given):
        mechanism.public_count(exact.map(lambda found: found[1][0]))
        return real(self, exact, *given)

    with (
        mock.patch.object(moments.MomentDesign, "estimate", leaking),
        pytest.raises(InvalidParameter, match="draw"),
    ):
        certify("mean", bounds=(0, 1), epsilon=1)


def tripled(name):
    """Totals that every row moves three times as far."""
    real = getattr(moments, name)
    return mock.patch.object(moments, name, lambda *given: [3 * total for total in real(*given)])


def on_a_wider_grid():
    """A sum of values that are held within ten times their bounds."""
    real = moments.MomentDesign.measures

    def wrong(self):
        of = replace(self.of, lower=10 * self.of.lower, upper=10 * self.of.upper)
        return real(replace(self, of=of))

    return mock.patch.object(moments.MomentDesign, "measures", wrong)


def of_sums():
    """A count that is a sum."""
    measured = moments.MomentDesign(
        wanted=(("n", "sum"),), of=Moment("sum", _VALUES, 0, 1000, True, None)
    )  # type: ignore[arg-type]
    return mock.patch.object(counts.CountDesign, "measures", return_value=measured.measures()[1:])


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (lambda: tripled("pair_totals"), "avg(age) GROUP BY place"),
        (lambda: tripled("bernstein_totals"), "variance"),
        (lambda: tripled("centred_totals"), "mean"),
        (lambda: tripled("centred_square_totals"), "std"),
        (lambda: tripled("joint_totals"), "variance"),
        (on_a_wider_grid, "mean"),
        (of_sums, "count(*) GROUP BY place"),
    ],
)
def test_integers_that_a_row_moves_further_lose_their_certificate(mutant, name):
    some = [one for one in certificates() if one[0].partition(" of ")[0] == name or one[0] == name]
    assert lost(some) == set()
    with mutant():
        assert lost(some)


def test_every_batch_of_a_file_is_certified():
    [make, *_] = [make for name, _, make in certificates() if name == "avg(age) GROUP BY place"]
    with mock.patch.object(answer_file, "PART", 2):
        assert make().holds
        noticed = pytest.raises(
            InvalidParameter, match=r"avg\(age\) has other noise in a file than in a table"
        )
        # the table itself, and the first batch of its file
        with with_shares_of_a_table(right=2), noticed:
            make()


def test_a_certificate_says_what_it_covers():
    certificate = certify("mean", bounds=(0, 120), epsilon=1)
    for text in (repr(certificate), certificate.to_json()):
        assert "the noise and the designs" in text
        assert "not the engine" in text


@pytest.mark.parametrize("neighbors", report.RELATIONS)
def test_replays_of_columns_that_are_missing_throughout_are_part_of_the_report(neighbors):
    found = [(name, work()) for name, relation, work in report._replays() if relation == neighbors]
    assert {name.rpartition(", ")[2] for name, _ in found} == {"dropped", "replaced"}
    assert [name for name, one in found if not one.passed] == []
