"""TRUST 42: the same numbers in another container are the same answer, or a charge of their own;
never a replay on another grid. And a tape that is read on other terms than it was written on is
refused, whatever the ledger says.
"""

from collections import deque
from decimal import Decimal
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import discreet
from discreet import InvalidParameter, Ledger, QueryRefused
from discreet.release import account
from discreet.release.question import Question
from discreet.release.tape import Tape, drawn, taping

AGES = [31, 5, 77, 42, 42, 18, 90, 63] * 25
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "objects": partial(np.array, dtype=object),
    "masked": np.ma.MaskedArray,
    "decimals": lambda x: [Decimal(one) for one in x],
    "fractions": lambda x: [Fraction(one) for one in x],
    **{
        name: partial(np.array, dtype=name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint64")
    },
    **{
        name: partial(np.array, dtype=name)
        for name in ("float16", "float32", "float64", "longdouble", ">f8")
    },
    "pandas": pandas.Series,
    "pandas Int64": partial(pandas.Series, dtype="Int64"),
    "pandas Float64": partial(pandas.Series, dtype="Float64"),
    "pandas arrow": partial(pandas.Series, dtype="int16[pyarrow]"),
    "polars": polars.Series,
    "polars Float32": lambda x: polars.Series([float(one) for one in x], dtype=polars.Float32),
    "arrow": pyarrow.array,
    "arrow float": lambda x: pyarrow.array([float(one) for one in x]),
    "arrow decimal": lambda x: pyarrow.array([Decimal(one) for one in x]),
}
STATISTICS = {
    "sum": (discreet.sum, 200 * 46),
    "mean": (discreet.mean, 46),
    "std": (discreet.std, float(np.std(AGES))),
    "median": (partial(discreet.median, confidence=None), 42),
    "histogram": (partial(discreet.histogram, bins=[0, 50, 100]), [125, 75]),
    "deciles": (
        lambda x, **given: discreet.quantiles(x, [f"0.{k}" for k in range(1, 10)], **given),
        None,
    ),
    "count": (discreet.count, 200),
    "proportion": (discreet.proportion, 1.0),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", 10**6)
        yield opened


def asked(ledger, call, column, **given):
    where = {
        "ledger": ledger,
        "study": "survey",
        "data_name": "age",
        "data_version": "1",
        "epsilon": 1000,
    }
    bounds = {} if call in (discreet.count, discreet.proportion) else {"bounds": (0, 100)}
    return call(column, **bounds, **where, **given)


@pytest.mark.parametrize("name", STATISTICS)
def test_every_container_has_the_answer_of_these_numbers(ledger, name):
    """At ε = 1000 noise is small; what differs by more was drawn on another grid."""
    call, truth = STATISTICS[name]
    answers = {}
    for kind, make in CONTAINERS.items():
        before = ledger.spent("survey")
        found = asked(ledger, call, make(AGES))
        if truth is not None:
            assert np.allclose(found.value, truth, rtol=0, atol=2), kind
        # free: then it is the answer of somebody before it, to the last bit
        if ledger.spent("survey") == before:
            assert any(np.array_equal(found.value, one) for one in answers.values()), kind
        answers[kind] = found.value
    # integers, integers that can be missing, and reals: not each its own
    assert ledger.spent("survey") <= 5000


def test_a_missing_value_more_or_less_does_not_change_the_question():
    """Only the type decides: the same canonical text with a hole and without it."""
    holes = [*AGES[:-1], None]
    makers = {
        "list": list,
        "pandas Int64": partial(pandas.Series, dtype="Int64"),
        "polars": partial(polars.Series, dtype=polars.Int64),
        "arrow": partial(pyarrow.array, type=pyarrow.int64()),
        "floats": lambda x: np.array(x, float),
    }
    for kind, make in makers.items():
        texts = []
        with mock.patch.object(account, "charged", side_effect=AssertionError):
            for items in (AGES, holes):
                with mock.patch(
                    "discreet.arrays.call.charged",
                    lambda *given, keep=texts: keep.append(given[1:3]),
                ):
                    discreet.mean(make(items), bounds=(0, 100), epsilon=1)
        assert texts[0] == texts[1], kind


def test_what_is_masked_is_missing():
    """In a mask the data below it is whatever was there before: none of it may count."""
    given = {"bounds": (0, 100), "epsilon": 1000}
    for kind in (object, "int64", "float64", "bool"):
        masked = np.ma.array([1] * 10 + [100] * 30, dtype=kind, mask=[False] * 10 + [True] * 30)
        assert abs(discreet.sum(masked, **given, neighbors="add-remove").value - 10) < 5, kind
        assert abs(discreet.count(masked, epsilon=1000).value - 10) < 5, kind
        assert abs(discreet.mean(masked, **given, missing=1).value - 1) < 5, kind
        if kind != "float64":  # a type that is refused
            bits = np.ma.array([0] * 10 + [1] * 30, dtype=kind, mask=[False] * 10 + [True] * 30)
            assert not discreet.randomized_response(bits, epsilon=1000).bits.any(), kind
        with pytest.raises(InvalidParameter, match="without a mask"):
            discreet.laplace_mechanism(masked, sensitivity=1, epsilon=1)


@pytest.mark.parametrize("kind", ["U", "S", "T"])
def test_a_refusal_does_not_tell_the_longest_text(kind):
    for words in (["a"], ["a" * 20]):
        for column in (np.array(words, kind), np.ma.array(np.array(words, kind), mask=[True])):
            with pytest.raises(
                InvalidParameter, match=r"^the data must be numbers, got a column of (text|bytes)$"
            ):
                discreet.mean(column, bounds=(0, 1), epsilon=1)
            with pytest.raises(InvalidParameter, match=r"^[^2]*$"):
                discreet.laplace_mechanism(column, sensitivity=1, epsilon=1)


CHANGED = {
    "another number of records": lambda: (np.array(AGES[:100]), {}),
    "integers": lambda: (np.array(AGES), {}),
    "integers that can be missing": lambda: (np.ma.MaskedArray(AGES), {}),
    "missing values replaced": lambda: (list(AGES), {"missing": 50}),
    "missing values replaced by others": lambda: (list(AGES), {"missing": 51}),
    "other neighbours": lambda: (list(AGES), {"neighbors": "add-remove"}),
}


@pytest.mark.parametrize("name", ["sum", "mean", "std", "median", "histogram", "deciles"])
def test_everything_that_the_draws_depend_on_is_a_question_of_its_own(ledger, name):
    call, _ = STATISTICS[name]
    asked(ledger, call, AGES)
    for times, (what, make) in enumerate(CHANGED.items(), 2):
        column, given = make()
        asked(ledger, call, column, **given)
        assert ledger.spent("survey") == times * 1000, what
    asked(ledger, call, np.array(AGES, float))
    assert ledger.spent("survey") == 1000 * (1 + len(CHANGED))  # as the list: free


def test_control_a_question_without_its_grid_is_refused_by_the_tape(ledger):
    """The hole that was: `whole` and n were not in the text of a question.

    The tape alone must notice.
    """
    real = Question.parameters.fget
    less = property(
        lambda self: {
            k: v for k, v in real(self).items() if k in ("bounds", "neighbors", "textbook")
        }
    )
    with mock.patch.object(Question, "parameters", less):
        for name in ("sum", "mean", "std", "median", "deciles"):
            call, _ = STATISTICS[name]
            asked(ledger, call, AGES)
            for column in (np.array(AGES), np.ma.MaskedArray(AGES)):
                with pytest.raises(QueryRefused, match="another grid"):
                    asked(ledger, call, column)


def test_algorithm_one_on_another_type_or_shape_is_a_charge_of_its_own(ledger):
    account = {"ledger": ledger, "study": "survey", "data_name": "counts", "data_version": "1"}
    answers = [
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        np.array([[1, 2]]),
        1,
        1.0,
        [2**70, 1],
    ]
    spent = []
    for answer in answers:
        discreet.laplace_mechanism(answer, sensitivity=1, epsilon=1, **account)
        spent.append(ledger.spent("survey"))
    assert spent == [1, 1, 2, 3, 4, 5, 6, 6]


def written(*draws):
    tape = Tape()
    with taping(tape):
        for terms, value in draws:
            drawn(lambda value=value: value, *terms)
    return tape.written()


@pytest.mark.parametrize(
    "read",
    [
        [("sums", 1, Fraction(5, 2))],
        [("counts", Fraction(5))],
        [("sums", 1, Fraction(5)), ("sums", 1, Fraction(5))],
        [],
    ],
    ids=["another scale", "another kind", "one draw more", "one draw less"],
)
def test_a_tape_is_read_on_the_terms_it_was_written_on(read):
    text = written((("sums", 1, Fraction(5)), [[3]]))
    with taping(Tape(text)):
        assert drawn(lambda: None, "sums", 1, Fraction(5)) == [[3]]

    def again():
        with taping(Tape(text)):
            for terms in read:
                drawn(lambda: None, *terms)

    with pytest.raises(QueryRefused, match="another grid"):
        again()


def test_what_is_no_tape_is_refused():
    with pytest.raises(QueryRefused, match="another grid"):
        Tape(b'{"sha256":"0"}')


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "longdouble", "objects", "decimals", "huge"]
)
def test_no_value_makes_a_warning(kind):
    """Warnings are errors in these tests; ends of every type, and what lies beyond the floats."""
    far = {
        "float16": lambda: np.array([65504, -65504, 6e-8, np.inf, np.nan], np.float16),
        "float32": lambda: np.array([3.4e38, -3.4e38, 1e-45, np.inf, np.nan], np.float32),
        "float64": lambda: np.array([1.7e308, -1.7e308, 5e-324, -np.inf, np.nan]),
        "longdouble": lambda: np.array(
            ["1e4000", "-1e4000", "1e-4000", "nan", "inf"], np.longdouble
        ),
        "objects": lambda: np.array(
            [np.longdouble("1e4000"), np.float16(65504), 10**400, None, "1e999"], object
        ),
        "decimals": lambda: [
            Decimal("1e4000"),
            Decimal("-1e-4000"),
            Decimal("sNaN"),
            Fraction(10**400, 3),
            1,
        ],
        "huge": lambda: [10**5000, -(10**5000), True, np.uint64(2**64 - 1), np.int8(-128)],
    }[kind]()
    given = {"bounds": (0, 100), "epsilon": 1}
    for relation in ("change-one", "add-remove"):
        for more in ({}, {"missing": 5}):
            for name, (call, _) in STATISTICS.items():
                if name not in ("count", "proportion"):
                    call(far, **given, **more, neighbors=relation)
            discreet.histogram(far, bins=7, **given, **more, neighbors=relation)
            discreet.max(far, **given, **more, neighbors=relation)
            discreet.min(far, **given, **more, method="laplace", neighbors=relation)
        discreet.count(far, epsilon=1, neighbors=relation)
        discreet.proportion(far, epsilon=1, neighbors=relation)
    if kind == "longdouble":
        discreet.mean(np.ma.MaskedArray(far), **given)
    with pytest.raises(InvalidParameter, match="one column"):
        discreet.mean(np.array([far, far]), **given)
