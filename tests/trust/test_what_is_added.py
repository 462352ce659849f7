"""TRUST 60: what is released is the exact integer plus the noise that was drawn for it, cell by
cell, on every path.

The proof of `discreet verify` at a larger size, and on PostgreSQL and Spark. For every path there
is a twin in which one thing is broken between the rows and the sampler, or between the sampler and
what is shown: the proof must catch it.
"""

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pytest

import conforming
from discreet.draw import addition, noted, vector
from discreet.engines.sql import measures
from discreet.errors import EngineFailed, InvalidParameter
from discreet.files import batches
from discreet.files.add_noise import add_noise
from discreet.ledger import refusals
from discreet.release import discovery, laplace_mechanism, mechanism, split
from discreet.release.profiles import octaves
from discreet.release.public_size import PublicSize
from discreet.release.reports import design as reports
from discreet.release.statistics import counts, moments, response
from discreet.verify import additions
from discreet.verify.added import Law
from discreet.verify.additions import Proof, study_of, table_of
from discreet.verify.additions_in_memory import topics

MOST = 70_000
LONG = dict(topics(rounds=3, most=MOST, rows=900, groups=(0, 3, 64, 65)))
SMALL = dict(topics(rounds=1, most=MOST, rows=100, groups=(65,)))
ASKED = (
    "count(*)|",
    "sum(far)|GROUP BY place",
    "count(*), avg(age), stddev(pay)|WHERE age >= 30",
    "median(age)|",
)


def changed(module, name, change):
    """A function whose result is changed."""
    real = getattr(module, name)
    return mock.patch.object(module, name, lambda *given, **named: change(real(*given, **named)))


def one_more(found):
    return found + 1


def one_more_each(columns):
    return [[int(number) + 1 for number in column] for column in columns]


def exchanged(found):
    """Many cells of which two have each other's noise."""
    found[[0, 1]] = found[[1, 0]]
    return found


def shifted_columns():
    """Noisy totals of a report with one more in the first cell."""
    real = mechanism.noisy_columns

    def wrong(*given):
        columns = real(*given)
        columns[0].values.array[0] += 1
        return columns

    return mock.patch.object(reports, "noisy_columns", wrong)


def halved_in_files():
    """Noise that is halved after it was drawn."""
    real = batches.noisy_into

    def wrong(target, exact, scale, **more):
        real(target, np.zeros_like(exact), scale, **more)
        target //= 2
        target += exact

    return mock.patch.object(batches, "noisy_into", wrong)


def missing_as_nought():
    """Missing values of a study that count as 0."""
    real = moments.on_grid
    return mock.patch.object(
        moments, "on_grid", lambda of, grid, missing: real(of, grid, missing or 0)
    )


def half_of_its_noise():
    """Tables of more than 64 cells with half of their noise."""
    real = mechanism.noisy_each

    def wrong(columns, scales, steps):
        return real(
            columns, [scale / (2 if len(columns[0]) > 64 else 1) for scale in scales], steps
        )

    return mock.patch.object(mechanism, "noisy_each", wrong)


def kept_for_its_scale():
    """Noise of a few numbers that comes again at the same scale."""
    real, kept = vector._fill, {}

    def wrong(out, scale, *given):
        real(out, scale, *given)
        if out.size < 8:
            out[:] = kept.setdefault((scale, out.size), out.copy())

    return mock.patch.object(vector, "_fill", wrong)


def three_rows_at_most():
    """A unit of many rows whose Δ is that of three."""
    real = split.terms_of

    def wrong(*given, **named):
        terms = real(*given, **named)
        return replace(terms, rows=min(terms.rows, 3))

    return mock.patch.object(split, "terms_of", wrong)


def above_the_total():
    """A ledger that refuses nothing."""
    return mock.patch.object(refusals, "refuse_above", return_value=None)


def public_though_chosen():
    """A relation with a filter whose number of rows counts as public."""
    return mock.patch.object(
        split, "public_size", lambda policy, _: PublicSize(True, "", policy.unit)
    )


def rows_alike():
    """Rows of an array that all have the noise of the first."""

    def wrong(out, scale, *given):
        real(out, scale, *given)
        out[:] = np.resize(out[:50], out.size)

    real = vector._fill
    return mock.patch.object(vector, "_fill", wrong)


def in_the_first_part_alone():
    """Parts of a file after the first with a thousandth of their noise."""
    real, calls = batches.noisy_into, []

    def wrong(target, exact, scale, **more):
        calls.append(scale)
        real(target, exact, scale / (1 if len(calls) == 1 else 1000), **more)

    return mock.patch.object(batches, "noisy_into", wrong)


TWINS = {
    "questions by relation, unit, condition and groups": missing_as_nought,
    "columns in memory, of every container": partial(
        changed, mechanism, "noisy_each", one_more_each
    ),
    "histograms, cumulative counts, octaves": partial(
        changed, counts, "noisy_counts", lambda found: found[::-1]
    ),
    "Algorithm 1 on numbers, lists and arrays": partial(
        changed, laplace_mechanism, "_to_steps", one_more
    ),
    "the textbook's mechanisms": partial(changed, mechanism, "noisy", lambda found: found + 1),
    "randomized response": partial(changed, response, "flips", np.logical_not),
    "noise on columns of files": halved_in_files,
    "reports": shifted_columns,
    "profiles": partial(changed, octaves, "noisy_counts", one_more),
    "discoveries": partial(changed, discovery, "kept_keys", lambda keys: keys[1:]),
    "frames, Parquet and text files as sources": partial(
        changed, mechanism, "noisy_each", one_more_each
    ),
    "totals near 10⁶, 2⁵³, 2⁶⁰, 2⁶³ and above": partial(
        mock.patch.object, addition, "fits_int64", lambda *_: True
    ),
    "answers of few groups, the same in several studies": kept_for_its_scale,
    "terms of a question, bins, units of many rows": three_rows_at_most,
    "shares of analysts, and what is above a total": above_the_total,
    "sources whose rows are chosen": public_though_chosen,
    "Algorithm 1 on arrays of several dimensions": rows_alike,
    "columns and files of several blocks": in_the_first_part_alone,
    f"answers in files, of up to {MOST:,} groups": partial(
        changed, addition, "_noisy_array", exchanged
    ),
    f"answers of 64, 65, 3,143 and {MOST:,} groups": half_of_its_noise,
}


@pytest.mark.slow
@pytest.mark.parametrize("topic", LONG)
def test_what_is_released_is_the_exact_number_plus_the_noise_that_was_drawn(topic):
    proof = Proof()
    LONG[topic](proof)
    assert proof.numbers > 0
    assert proof.law.improbable() == []


def test_every_path_has_a_twin():
    assert list(TWINS) == list(LONG) == list(SMALL)


@pytest.mark.parametrize("topic", TWINS)
def test_control_a_twin_of_every_path_is_caught(topic):
    with TWINS[topic](), pytest.raises(InvalidParameter):
        SMALL[topic](Proof())


@pytest.mark.parametrize("broken", [1, 2])
def test_control_noise_that_is_too_small_for_its_scale_or_used_again_is_caught(broken):
    """All of 3,143 draws have half of the size of their scale, or the second half of them is the
    first again.
    """
    real = vector._fill

    def wrong(out, scale, *given):
        real(out, scale, *given)
        if out.size > 1000:
            out[:] = out // 2 if broken == 1 else np.resize(out[:1000], out.size)

    proof = Proof()
    with mock.patch.object(vector, "_fill", wrong):
        if broken == 2:
            with pytest.raises(InvalidParameter, match="same noise twice"):
                additions.sizes(proof, 3_143, 20)
            return
        additions.sizes(proof, 3_143, 20)
    [wrong_size] = proof.law.improbable()
    assert "too small" in wrong_size


def test_the_law_of_the_noise_finds_five_percent_less_and_is_silent_on_the_right_size():
    """With 200,000 draws: 5 % less has a probability below 10⁻¹⁰⁰ under the right scale; a false
    alarm, below 10⁻¹².
    """
    right, wrong = Law(), Law()
    draws = np.empty(200_000, np.int64)
    vector.fill(draws, Fraction(10**6))
    right.add([noted.Noted("laplace", Fraction(10**6), draws.size, draws)], "noise")
    wrong.add([noted.Noted("laplace", Fraction(1_052_632), draws.size, draws)], "noise")
    assert right.improbable() == []
    assert len(wrong.improbable()) >= 1


def proved_on(opened, neighbors, unit):
    """Questions on another engine, with the same rows."""
    proof = Proof()
    rows = additions.people(proof.dice, 70)
    engine, _ = opened(table_of(rows))
    with study_of(table_of(rows), neighbors=neighbors, **unit) as study:
        study.__dict__["engine"] = engine
        for text in (*ASKED, *(["count(DISTINCT who)|GROUP BY level"] if unit else [])):
            additions.ask(proof, study, rows, text)
        for tables in (additions._REPORT, additions._OF_SOME):
            additions.report(proof, study.report(tables, epsilon=proof.dice.epsilon()), rows)
    assert proof.numbers > 0
    assert proof.law.improbable() == []


def beyond_its_bounds():
    """A clamp without its upper end."""
    real = measures._clamped
    return mock.patch.object(
        measures, "_clamped", lambda value, there, lower, _: real(value, there, lower, value)
    )


@pytest.mark.parametrize(
    "unit", additions.UNITS, ids=["rows", "two rows", "three rows in one group"]
)
@pytest.mark.parametrize("neighbors", additions.RELATIONS)
def test_on_postgresql(postgres, neighbors, unit):
    proved_on(conforming.on_postgresql(postgres), neighbors, unit)


def test_control_on_postgresql_a_clamp_that_is_left_out_is_caught(postgres):
    from discreet.engines.sql.engine import _known_statement

    opened = conforming.on_postgresql(postgres)
    # an engine of ours proves itself before
    engine = opened(table_of(additions.people(Proof().dice, 3)))[0]
    assert engine
    _known_statement.cache_clear()
    with (
        beyond_its_bounds(),
        pytest.raises((EngineFailed, InvalidParameter), match=r"is not the exact number|fails"),
    ):
        # a number may be too large for an integer of PostgreSQL
        proved_on(opened, "add-remove", {})
    _known_statement.cache_clear()


SPARK = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class TestSpark:
    pytestmark = SPARK

    @pytest.mark.parametrize("unit", additions.UNITS[::2], ids=["rows", "three rows in one group"])
    def test_questions(self, spark, unit):
        proved_on(conforming.on_spark(spark), "change-one", unit)

    @pytest.mark.parametrize("halved", [False, True])
    def test_noise_on_the_executors(self, spark, tmp_path, monkeypatch, halved):
        """Each worker writes what it heard; what Spark wrote must be the rows plus that, and the
        control must not.
        """
        rows = [(f"k{key}", None if key % 7 == 0 else key * 10**15, key % 5) for key in range(500)]
        frame = spark.createDataFrame(rows, "name string, n bigint, small int").repartition(4)
        heard = tmp_path / "heard"
        heard.mkdir()
        monkeypatch.setattr("discreet.files.spark.noisy_batches", workers(str(heard), halved))
        found = add_noise(
            frame,
            str(tmp_path / "out"),
            columns=["n", "small"],
            keep=["name"],
            sensitivity=3,
            epsilon="0.001",
        )
        released = {row["name"]: (row["n"], row["small"]) for row in found.collect()}
        expected, scales = {}, set()
        for file in heard.iterdir():
            given, notes = pickle.loads(file.read_bytes())  # noqa: S301 - our own
            noise = np.stack([drawn for _, drawn in notes])
            scales |= {scale for scale, _ in notes}
            assert noise.shape == (2, len(given))
            for index, row in enumerate(given):
                expected[row["name"]] = tuple(
                    (row[name] or 0) + int(noise[at, index])
                    for at, name in enumerate(("n", "small"))
                )
        assert scales == {3000}
        assert {name: (n or 0, small) for name, n, small in rows}.keys() == expected.keys()
        assert (released == expected) is not halved


def workers(folder, halved):
    """What runs on the executors; made in a function, so that Spark sends the code and not the name
    of this module.
    """

    def listening(given, **terms):
        import os
        import pickle

        from discreet.draw.noted import noting
        from discreet.files.batches import noisy_batches

        for batch in given:
            with noting() as notes:
                [noisy] = noisy_batches([batch], **terms)
            content = pickle.dumps(
                (batch.to_pylist(), [(note.parameter, note.drawn) for note in notes])
            )
            with open(os.path.join(folder, os.urandom(8).hex()), "wb") as file:
                file.write(content)
            if halved:
                import pyarrow as pa

                column = pa.array([value // 2 for value in noisy.column(0).to_pylist()])
                noisy = noisy.set_column(0, noisy.schema.field(0), column)
            yield noisy

    return listening


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda out: out & -2, "bits that are not fair"),
        (np.abs, "signs that are not fair"),
        (
            lambda out: np.repeat(out[: -(-out.size // 2)], 2)[: out.size],
            "too often as large as noise beside it",
        ),
        (
            lambda out: np.concatenate([out[: -(-out.size // 2)], -out])[: out.size],
            "too often as large as noise beside",
        ),
    ],
)
def test_control_noise_of_the_right_size_that_does_not_follow_its_law_is_caught(wrong, words):
    """Even numbers tell whether a total is odd; pairs of opposite numbers tell the sum of two
    totals.
    """
    law = Law()
    for _ in range(4):
        drawn = vector.sample(Fraction(10**6), 500)
        law.add([noted.Noted("laplace", Fraction(10**6), 500, wrong(drawn))], "a release")
    assert any(words in sentence for sentence in law.improbable())


def test_noise_as_it_is_drawn_follows_its_law_for_every_scale_and_number():
    """A right sampler fails in fewer than one of 10⁹ runs."""
    law = Law()
    for scale in (
        Fraction(1, 3),
        Fraction(7),
        Fraction(10**4),
        Fraction(2**30, 3),
        Fraction(2**49 - 1),
    ):
        for count in (1, 2, 7, 20, 200, 3_000, 70_000):
            law.add(
                [noted.Noted("laplace", scale, count, vector.sample(scale, count))], "a release"
            )
    assert law.improbable() == []
