"""The statistics of an array, as a caller sees them."""

import array as arrays_of_python
import csv
import math
import re
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import InvalidParameter
from discreet.draw import vector
from discreet.engines.presence import presence
from discreet.release import mechanism
from discreet.release.statistics import tree
from noiseless import no_noise, recorded

RELATIONS = ["change-one", "add-remove"]
DECILES = [f"0.{k}" for k in range(1, 10)]
AGES = [31, 5, 77, 42, 42, 18, 90, 63]

BOUNDED: dict[str, Callable[..., Any]] = {
    "sum": discreet.sum,
    "mean": discreet.mean,
    "textbook mean": partial(discreet.mean, method="laplace"),
    "variance": discreet.variance,
    "textbook variance": partial(discreet.variance, method="laplace", missing=50),
    "std": discreet.std,
    "textbook std": partial(discreet.std, method="laplace", missing=50),
    "median": discreet.median,
    "textbook median": partial(discreet.median, method="laplace"),
    "quantile": lambda x, **given: discreet.quantile(x, "0.9", **given),
    "quantiles": lambda x, **given: discreet.quantiles(x, ["0.2", "0.7"], **given),
    "deciles": lambda x, **given: discreet.quantiles(x, DECILES, **given),
    "cdf": discreet.cdf,
    "min": discreet.min,
    "textbook min": partial(discreet.min, method="laplace"),
    "max": discreet.max,
    "textbook max": partial(discreet.max, method="laplace"),
    "histogram": lambda x, **given: discreet.histogram(x, bins=7, **given),
    "mean_and_std": discreet.mean_and_std,
    "summary": discreet.summary,
}
UNBOUNDED: dict[str, Callable[..., Any]] = {
    "count": discreet.count,
    "proportion": discreet.proportion,
}


def exact(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The answer with the noise switched off."""
    return recorded(lambda: call(*given, **named)).answer


def numbers(answer: Any) -> list[Any]:
    """All numbers of an answer."""
    if isinstance(answer, discreet.Releases):
        return [number for part in answer.values() for number in numbers(part)]
    return np.ravel(answer.value).tolist()


@pytest.fixture
def no_draws(monkeypatch):
    def fail(*_: Any) -> None:
        raise AssertionError("a refused call must not draw")

    for module, name in (
        (vector, "draw_one"),
        (vector, "fill"),
        (mechanism, "choose"),
        (tree, "fill"),
    ):
        monkeypatch.setattr(module, name, fail)


# Containers


def containers() -> dict[str, Callable[[list[Any]], Any]]:
    found: dict[str, Callable[[list[Any]], Any]] = {
        "list": list,
        "tuple": tuple,
        "deque": deque,
        "array": partial(arrays_of_python.array, "d"),
        "objects": lambda x: np.array(x, object),
        "strided": lambda x: np.repeat(np.array(x), 2)[::2],
        "masked": np.ma.MaskedArray,
        "decimals": lambda x: [Decimal(one) for one in x],
        "fractions": lambda x: [Fraction(one) for one in x],
        **{
            name: partial(np.array, dtype=name)
            for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
        },
        **{
            name: partial(np.array, dtype=name)
            for name in ("float16", "float32", "float64", "longdouble", ">f8", ">i4")
        },
    }
    return found


def foreign() -> dict[str, Callable[[list[Any]], Any]]:
    pandas, polars, pyarrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
    return {
        "pandas": pandas.Series,
        "pandas index": pandas.Index,
        "pandas objects": lambda x: pandas.Series(x, dtype=object),
        "pandas Int64": lambda x: pandas.Series(x, dtype="Int64"),
        "pandas Float32": lambda x: pandas.Series(x, dtype="Float32"),
        "pandas arrow": lambda x: pandas.Series(x, dtype="int16[pyarrow]"),
        "polars": polars.Series,
        "polars UInt8": lambda x: polars.Series(x, dtype=polars.UInt8),
        "polars Float32": lambda x: polars.Series([float(one) for one in x], dtype=polars.Float32),
        "polars Decimal": lambda x: polars.Series([Decimal(one) for one in x]),
        "arrow": pyarrow.array,
        "arrow chunks": lambda x: pyarrow.chunked_array([x[:3], x[3:]]),
        "arrow float": lambda x: pyarrow.array([float(one) for one in x]),
        "arrow decimal": lambda x: pyarrow.array([Decimal(one) for one in x]),
    }


@pytest.mark.parametrize("kind", containers())
def test_a_column_is_the_same_in_every_container(kind):
    check_container(containers()[kind](AGES))


def test_a_column_is_the_same_in_pandas_polars_and_arrow():
    for make in foreign().values():
        check_container(make(AGES))


def check_container(column: Any) -> None:
    """Real numbers and integers have other grids, so the answers agree to a few steps."""
    for name, call in BOUNDED.items():
        given = {"bounds": (0, 100), "epsilon": 1}
        expected, found = (numbers(exact(call, x, **given)) for x in (np.array(AGES), column))
        steps = (
            7
            if name in ("min", "max")
            else 1
            if name in ("deciles", "median", "quantile", "quantiles")
            else 0.2
        )
        if name == "cdf":
            expected, found = expected[-1:], found[-1:]
        assert np.allclose(found, expected, rtol=0, atol=steps if "summary" not in name else 1), (
            name
        )
    assert exact(discreet.count, column, epsilon=1).value == len(AGES)


def test_truth_values_are_the_same_in_every_container():
    pandas, polars, pyarrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
    answers = [True, False, True, None, True]
    columns = {
        "list": answers,
        "objects": np.array(answers, object),
        "masked": np.ma.MaskedArray([True, False, True, True, True], [0, 0, 0, 1, 0]),
        "pandas objects": pandas.Series(answers, dtype=object),
        "pandas boolean": pandas.Series(answers, dtype="boolean"),
        "pandas arrow": pandas.Series(answers, dtype="bool[pyarrow]"),
        "polars": polars.Series(answers),
        "arrow": pyarrow.array(answers),
        "arrow chunks": pyarrow.chunked_array([answers[:2], answers[2:]]),
    }
    for kind, column in columns.items():
        assert exact(discreet.count, column, epsilon=1).value == 3, kind
        assert exact(discreet.proportion, column, epsilon=1).value == 3 / 4, kind
        assert exact(discreet.proportion, column, epsilon=1, missing=False).value == 3 / 5, kind
        assert exact(discreet.proportion, column, epsilon=1, missing=1).value == 4 / 5, kind
    full = np.array([True, False, True])
    assert exact(discreet.count, full, epsilon=1).value == 2
    assert exact(discreet.mean, full, bounds=(0, 1), epsilon=1).value == pytest.approx(2 / 3)


def test_a_count_counts_what_is_there_and_a_proportion_clamps_it():
    mixed = [0, 3, None, math.nan, -0.0, "word", False, True, math.inf]
    assert exact(discreet.count, mixed, epsilon=1).value == 6
    assert exact(discreet.proportion, mixed, epsilon=1).value == pytest.approx(3 / 6)


SHARES = [0.5, 0.25, 0.0, 1.0, 0.125, 0.75, -3.0, 7.0]  # of which the last two count as 0 and 1


@pytest.mark.parametrize("relation", ["change-one", "add-remove"])
def test_a_proportion_is_the_mean_of_numbers_from_0_to_1_in_every_container(relation):
    true = sum(min(max(share, 0), 1) for share in SHARES) / len(SHARES)
    for make in (
        list,
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        lambda x: np.array(x, object),
    ):
        assert exact(
            discreet.proportion, make(SHARES), epsilon=1, neighbors=relation
        ).value == pytest.approx(true)
        holed = make([*SHARES, None] if make is not np.array else [*SHARES, math.nan])
        assert exact(
            discreet.proportion, holed, epsilon=1, neighbors=relation
        ).value == pytest.approx(true)
        with_missing = exact(
            discreet.proportion, holed, epsilon=1, neighbors=relation, missing="0.5"
        ).value
        assert with_missing == pytest.approx((8 * true + 0.5) / 9)
    fractions = [Fraction(1, 3), Decimal("0.5"), "0.25", np.float32(0.75)]
    assert exact(discreet.proportion, fractions, epsilon=1).value == pytest.approx(
        (1 / 3 + 0.5 + 0.25 + 0.75) / 4
    )


@pytest.mark.parametrize(
    "first", [True, 1, 0, 0.5, 1.0, -7.25, math.nan, None, "word", object(), 10**400]
)
def test_no_value_decides_how_a_proportion_is_drawn(first):
    """The grid, the scale and the step follow from the type of the column; a list has none."""
    for relation in ("change-one", "add-remove"):
        found = discreet.proportion([first, *[True, False] * 20], epsilon=1, neighbors=relation)
        usual = discreet.proportion([False, *[True, False] * 20], epsilon=1, neighbors=relation)
        assert (found.scale, found.step, found.sensitivity) == (
            usual.scale,
            usual.step,
            usual.sensitivity,
        )
        assert found.note == usual.note


def test_a_proportion_of_truths_and_whole_numbers_is_drawn_in_whole_people():
    for column in (
        np.array([True, False] * 20),
        np.array([1, 0] * 20),
        np.array([1, 0] * 20, np.uint8),
    ):
        release = discreet.proportion(column, epsilon=1)
        assert release.step == release.sensitivity == Fraction(1, 40)
        assert (release.value * 40).is_integer() or release.value in (0, 1)


def test_a_count_of_numbers_counts_zeros():
    assert exact(discreet.count, np.array([0.0, math.nan, 2.0]), epsilon=1).value == 2
    assert exact(discreet.count, np.array([0, 0, 2]), epsilon=1).value == 3


def test_numbers_written_as_texts_are_those_numbers():
    cells = next(zip(*csv.reader(["34", " 51", "n/a", '"3,5"']), strict=True))
    assert exact(discreet.sum, cells, bounds=(0, 120), missing=0, epsilon=1).value == pytest.approx(
        85
    )
    assert exact(
        discreet.mean, ["34", "51"] * 50, bounds=(0, 120), epsilon=1
    ).value == pytest.approx(42.5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_integers_in_give_integers_out(relation):
    column = np.array(AGES)
    given = {"bounds": (0, 100), "epsilon": 1, "neighbors": relation}
    for call in (discreet.sum, discreet.median):
        assert type(call(column, **given).value) is int
    for call in (discreet.min, discreet.max):  # on 33 cells
        assert type(call(column, **given).value) is float
        assert type(call(column, **given | {"bounds": (0, 20)}).value) is int
    assert type(discreet.count(column, epsilon=1, neighbors=relation).value) is int
    assert discreet.histogram(column, bins=4, **given).value.dtype == np.int64
    for call in (discreet.mean, discreet.variance, discreet.std):
        assert type(call(column, **given).value) is float
    assert type(discreet.sum(AGES, **given).value) is float  # a list has no type of its own


def refused(call: Callable[..., Any], *given: Any, words: str = "", **named: Any) -> bool:
    """Whether a call is refused with these words."""
    try:
        call(*given, **named)
    except InvalidParameter as error:
        return re.search(words, str(error)) is not None
    return False


@pytest.mark.parametrize(
    "column",
    [
        np.zeros((2, 2)),
        np.array(["1", "2"]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.array([1j]),
        np.zeros(2, [("a", int)]),
        np.float64(3),
        3,
        None,
        "12",
        b"12",
        {1, 2},
        {"a": 1},
        iter([1, 2]),
    ],
    ids=lambda column: str(getattr(column, "dtype", type(column).__name__)),
)
@pytest.mark.usefixtures("no_draws")
def test_what_is_no_column_of_numbers_is_refused(column):
    names = {*BOUNDED, *UNBOUNDED}
    if getattr(column, "ndim", 0) == 1:  # anything can be counted
        assert len(presence(column)) == len(column)
        names.remove("count")
    assert [
        name
        for name in names
        if not refused(call_of(name), column, epsilon=1, words="the data must be")
    ] == []


@pytest.mark.usefixtures("no_draws")
def test_foreign_columns_of_other_types_are_refused():
    pandas, polars, pyarrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
    for column in (
        pandas.Series(["a"]),
        pandas.Series(["a"], dtype="category"),
        pandas.Series(pandas.to_datetime(["2020-01-01"])),
        pandas.DataFrame({"a": [1]}),
        polars.Series(["a"]),
        polars.Series([[1], [2]]),
        polars.DataFrame({"a": [1]}),
        pyarrow.array(["a"]),
        pyarrow.array([{"a": 1}]),
        pyarrow.table({"a": [1]}),
    ):
        with pytest.raises(InvalidParameter, match="the data must be"):
            discreet.mean(column, bounds=(0, 1), epsilon=1)


def call_of(name: str) -> Callable[..., Any]:
    return partial(BOUNDED[name], bounds=(0, 100)) if name in BOUNDED else UNBOUNDED[name]


# Parameters


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        5,
        (1,),
        (0, 1, 2),
        (1, 0),
        (1, 1),
        (math.nan, 1),
        (0, math.inf),
        (-math.inf, 0),
        (-1.7e308, 1.7e308),
        (True, 5),
        ("a", "b"),
        (None, 1),
    ],
    ids=str,
)
@pytest.mark.usefixtures("no_draws")
def test_bad_bounds_are_refused_before_anything_is_drawn(bounds):
    names = {*BOUNDED} - {"histogram"}
    assert [
        name for name in names if not refused(BOUNDED[name], AGES, bounds=bounds, epsilon=1)
    ] == []


@pytest.mark.parametrize(
    "epsilon", [math.nan, math.inf, 0, -1, True, "0.1x", "1e400", 5e-324, "9" * 5000, None]
)
@pytest.mark.usefixtures("no_draws")
def test_bad_epsilons_are_refused_before_anything_is_drawn(epsilon):
    names = {*BOUNDED, *UNBOUNDED}
    assert [
        name for name in names if not refused(call_of(name), AGES, epsilon=epsilon, words="epsilon")
    ] == []


@pytest.mark.parametrize("name", [*BOUNDED, *UNBOUNDED])
@pytest.mark.usefixtures("no_draws")
def test_other_bad_parameters_are_refused_before_anything_is_drawn(name):
    with pytest.raises(InvalidParameter, match="neighbors"):
        call_of(name)(AGES, epsilon=1, neighbors="swap")
    if name in BOUNDED:
        with pytest.raises(InvalidParameter, match="missing"):
            call_of(name)(AGES, epsilon=1, missing=math.nan)


@pytest.mark.parametrize(
    "call", [discreet.mean, discreet.variance, discreet.std, discreet.median, discreet.min]
)
@pytest.mark.usefixtures("no_draws")
def test_an_unknown_method_is_refused(call):
    for method in ("gauss", None, 1, True):
        with pytest.raises(InvalidParameter, match="method"):
            call(AGES, bounds=(0, 100), epsilon=1, method=method)


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.1, math.nan, "half", None, True])
@pytest.mark.usefixtures("no_draws")
def test_a_share_outside_0_and_1_is_refused(q):
    with pytest.raises(InvalidParameter, match="q"):
        discreet.quantile(AGES, q, bounds=(0, 100), epsilon=1)
    with pytest.raises(InvalidParameter, match="q"):
        discreet.quantiles(AGES, [q], bounds=(0, 100), epsilon=1)


@pytest.mark.parametrize("qs", [[], 0.5, None, ["0.5", "0.4"], "0.5"])
@pytest.mark.usefixtures("no_draws")
def test_quantiles_need_shares_in_rising_order(qs):
    with pytest.raises(InvalidParameter, match="q"):
        discreet.quantiles(AGES, qs, bounds=(0, 100), epsilon=1)


@pytest.mark.parametrize(
    ("bins", "bounds"),
    [
        (3, None),
        (0, (0, 1)),
        (-1, (0, 1)),
        (2.5, (0, 1)),
        (True, (0, 1)),
        ([1], None),
        ([], None),
        ([0, 0], None),
        ([1, 0], None),
        ([0, math.nan], None),
        ([0, math.inf], None),
        (np.array([0, math.nan, 1]), None),
        (["a", "b"], None),
        (10**9, (0, 1)),
        (3, (1, 0)),
        ("abc", (0, 1)),
    ],
    ids=str,
)
@pytest.mark.usefixtures("no_draws")
def test_bad_bins_are_refused(bins, bounds):
    with pytest.raises(InvalidParameter):
        discreet.histogram(AGES, bins=bins, bounds=bounds, epsilon=1)


@pytest.mark.parametrize("cells", [0, 1, 2.5, True, None, 10**9, -4])
@pytest.mark.usefixtures("no_draws")
def test_bad_numbers_of_cells_are_refused(cells):
    with pytest.raises(InvalidParameter, match="cells"):
        discreet.cdf(AGES, bounds=(0, 100), epsilon=1, cells=cells)


@pytest.mark.parametrize("confidence", [0, 1, 2, math.nan, "x", True])
@pytest.mark.usefixtures("no_draws")
def test_bad_confidences_are_refused(confidence):
    with pytest.raises(InvalidParameter, match="confidence"):
        discreet.median(AGES, bounds=(0, 100), epsilon=1, confidence=confidence)


@pytest.mark.parametrize(
    "bounds", [("0", "1e-300"), (0, 1e300), (-1e300, 1e300), (1, "1.0000000000000000001")]
)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", BOUNDED)
def test_extreme_bounds_give_finite_answers_or_a_refusal(name, relation, bounds):
    try:
        answer = BOUNDED[name](
            [0.0, 1e308, -1e-320], bounds=bounds, epsilon="1e-9", neighbors=relation
        )
    except InvalidParameter as error:
        assert re.search("apart|add-remove|must differ", str(error))  # noqa: PT017
    else:
        assert np.isfinite(numbers(answer)).all() or "mean" in name
        assert repr(answer)


# Empty and tiny data

NEEDS_SOMEBODY = {
    "mean",
    "textbook mean",
    "variance",
    "textbook variance",
    "std",
    "textbook std",
    "mean_and_std",
}
NEEDS_SOMEBODY |= {"summary", "textbook median", "proportion"}


@pytest.mark.parametrize(
    "empty", [[], np.array([]), np.array([], int)], ids=["list", "floats", "ints"]
)
@pytest.mark.usefixtures("no_draws")
def test_nobody_under_change_one_is_refused_where_n_divides(empty):
    for name in NEEDS_SOMEBODY:
        with pytest.raises(InvalidParameter, match=r"needs at least (one record|2 records)"):
            call_of(name)(empty, epsilon=1)


def test_nobody_under_change_one_is_an_answer_where_n_does_not_divide():
    for name in {*BOUNDED, *UNBOUNDED} - NEEDS_SOMEBODY:
        for empty in ([], np.array([], int)):
            assert np.isfinite(numbers(call_of(name)(empty, epsilon=1))).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("column", [[], [50.0], [None], np.array([], int), np.array([3])], ids=str)
def test_one_person_or_nobody_gives_the_same_kind_of_answer(column, relation):
    for name in {*BOUNDED, *UNBOUNDED} - {"textbook variance", "textbook std"}:
        if relation == "change-one" and len(column) == 0:
            continue
        answer = call_of(name)(column, epsilon=1, neighbors=relation)
        assert np.isfinite(numbers(answer)).all() or name == "textbook mean", name
        answer.interval()
        assert repr(answer), name


@pytest.mark.usefixtures("no_draws")
def test_the_textbook_has_no_spread_of_one_record_nor_under_add_remove():
    for call in (discreet.variance, discreet.std):
        for sample in (False, True):
            with pytest.raises(InvalidParameter, match="at least"):
                call([5.0], bounds=(0, 10), epsilon=1, method="laplace", missing=0, sample=sample)
        with pytest.raises(InvalidParameter, match="add-remove"):
            call(AGES, bounds=(0, 100), epsilon=1, method="laplace", neighbors="add-remove")
        with pytest.raises(InvalidParameter, match="give missing="):
            call(AGES, bounds=(0, 100), epsilon=1, method="laplace")


# Values


def test_values_are_clamped_before_they_are_summed():
    column = [-1e9, 5.0, 1e9, math.inf, -math.inf]
    assert exact(discreet.sum, column, bounds=(0, 10), epsilon=1).value == pytest.approx(
        25, abs=1e-4
    )
    assert (
        exact(discreet.sum, np.array([-100, 3, 100]), bounds=(-1, 7), epsilon=1).value == -1 + 3 + 7
    )


@pytest.mark.parametrize(
    ("missing", "expected"), [(0, 0), (10, 10), (99, 10), (-3, 0), ("2.5", 2.5)]
)
def test_missing_values_are_what_is_declared(missing, expected):
    given = {"bounds": (0, 10), "epsilon": 1, "missing": missing}
    for column in ([None, math.nan, "word"], np.full(3, math.nan)):
        assert exact(discreet.sum, column, **given).value == pytest.approx(3 * expected, abs=1e-4)
        assert exact(discreet.mean, column, **given).value == pytest.approx(expected, abs=1e-4)
        assert exact(discreet.median, column, **given).value == pytest.approx(expected, abs=1e-2)
        [counts] = [
            exact(discreet.histogram, column, bins=[0, 1, 4, 6, 10], **given).value.tolist()
        ]
        assert counts[int(np.searchsorted([1, 4, 6], expected, side="right"))] == 3


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shape", ["smooth", "ties"])
def test_at_a_huge_epsilon_the_answers_are_those_of_numpy(shape, relation):
    rng = np.random.default_rng(3)
    x, bounds = (
        (rng.beta(2, 5, 1001), (0, 1))
        if shape == "smooth"
        else (rng.integers(0, 50, 1001), (0, 60))
    )
    given = {"bounds": bounds, "epsilon": 10**6, "neighbors": relation}
    fine = (bounds[1] - bounds[0]) * 1e-4
    assert float(discreet.sum(x, **given)) == pytest.approx(x.sum(), abs=20 * fine)
    assert float(discreet.mean(x, **given)) == pytest.approx(x.mean(), abs=fine)
    assert float(discreet.variance(x, **given)) == pytest.approx(x.var(), abs=fine * bounds[1])
    assert float(discreet.variance(x, sample=True, **given)) == pytest.approx(
        x.var(ddof=1), abs=fine * bounds[1]
    )
    assert float(discreet.std(x, **given)) == pytest.approx(x.std(), abs=fine)
    assert float(discreet.std(x, sample=True, **given)) == pytest.approx(x.std(ddof=1), abs=fine)
    assert float(discreet.median(x, **given)) == pytest.approx(np.median(x), abs=fine)
    quantile = np.quantile(x, 0.9, method="inverted_cdf")
    assert float(discreet.quantile(x, "0.9", **given)) == pytest.approx(quantile, abs=fine)
    tenths = np.quantile(x, [k / 10 for k in range(1, 10)], method="inverted_cdf")
    assert np.allclose(discreet.quantiles(x, DECILES, **given), tenths, rtol=0, atol=10 * fine)
    assert discreet.count(x, epsilon=10**6, neighbors=relation).value == 1001
    curve = discreet.cdf(x, **given)
    assert curve.value[-1] == pytest.approx(1001)
    assert np.all(np.diff(curve.value) >= 0)
    summary = discreet.summary(x, **given)
    assert [float(part) for part in summary.values()] == pytest.approx(
        [1001, x.mean(), x.std(), *np.quantile(x, [0.25, 0.5, 0.75], method="inverted_cdf")],
        abs=10 * fine,
    )


@pytest.mark.parametrize("n", [2, 3, 10, 101])
def test_the_textbook_forms_at_a_huge_epsilon_are_those_of_numpy(n):
    x = np.random.default_rng(n).uniform(-3, 5, n)
    given = {"bounds": (-4, 6), "epsilon": 10**6, "method": "laplace"}
    for found, expected in (
        (discreet.mean(x, **given), x.mean()),
        (discreet.mean(x, neighbors="add-remove", **given), x.mean()),
        (discreet.mean(x, missing=0, **given), x.mean()),
        (discreet.variance(x, missing=0, **given), x.var()),
        (discreet.variance(x, missing=0, sample=True, **given), x.var(ddof=1)),
        (discreet.std(x, missing=0, **given), x.std()),
        (discreet.std(x, missing=0, sample=True, **given), x.std(ddof=1)),
        (discreet.median(x, **given), np.median(x)),
        (discreet.median(x, missing=0, **given), np.median(x)),
        (discreet.median(x, neighbors="add-remove", **given), np.median(x)),
        (discreet.quantile(x, "0.9", **given), np.quantile(x, 0.9, method="inverted_cdf")),
        (discreet.quantile(x, "1e-9", **given), x.min()),
        (discreet.min(x, **given), x.min()),
        (discreet.max(x, neighbors="add-remove", **given), x.max()),
    ):
        assert float(found) == pytest.approx(expected, abs=1e-3), found.statistic


def test_the_extremes_leave_some_records_beyond_them():
    x = np.random.default_rng(1).uniform(0, 1, 10_000)
    given = {"bounds": (0, 4), "epsilon": 1}
    # about seven of ten choices are the best cell: half of 400 miss it with a chance below 10⁻¹²
    assert 0.9 < np.median([float(discreet.max(x, **given)) for _ in range(400)]) < 1.2
    assert 0 <= np.median([float(discreet.min(x, **given)) for _ in range(400)]) < 0.2
    assert "records lie above" in discreet.max(x, **given).note
    assert "records lie below" in discreet.min(x, **given).note


def test_quantiles_rise_however_large_the_noise():
    for shares in (["0.1", "0.5", "0.5", "0.9"], DECILES):
        for _ in range(20):
            found = discreet.quantiles(AGES, shares, bounds=(0, 100), epsilon="0.01")
            assert np.all(np.diff(found.value) >= 0)
            low, high = found.interval()
            assert np.all(np.diff(low) >= 0)
            assert np.all(np.diff(high) >= 0)


@pytest.mark.parametrize("bins", [1, 2, 7, 100, 1000])
def test_histograms_are_those_of_numpy(bins):
    rng = np.random.default_rng(bins)
    for low, high in ((0, 1), (-3, 7), (0.1, 0.7), (1e9, 1e9 + 3), (-1e-5, 1e-5)):
        edges = np.linspace(low, high, bins + 1)
        x = np.concatenate(
            [
                rng.uniform(low, high, 2000),
                edges,
                np.nextafter(edges, low),
                np.nextafter(edges, high),
            ]
        )
        inside = x[(x >= low) & (x <= high)]
        expected = np.histogram(inside, edges)[0]
        for listed in (edges, edges.tolist(), tuple(edges)):
            found = exact(discreet.histogram, inside, bins=listed, epsilon=1)
            assert found.value.tolist() == expected.tolist()
        counted = exact(
            discreet.histogram, inside, bins=bins, bounds=(float(low), float(high)), epsilon=1
        )
        assert counted.value.tolist() == expected.tolist()
        assert counted.edges == tuple(edges)


def test_what_lies_outside_counts_in_the_first_or_the_last_bin():
    found = exact(
        discreet.histogram, [-5, 0.5, 9, math.inf, -math.inf, 1e308], bins=[0, 1, 2], epsilon=1
    )
    assert found.value.tolist() == [3, 3]


def test_bins_narrower_than_the_floats_are_no_error():
    found = exact(
        discreet.histogram,
        [1e15, 1e15 + 0.5, 1e15 + 1],
        bins=1000,
        bounds=(10**15, 10**15 + 1),
        epsilon=1,
    )
    assert found.value.sum() == 3


def test_edges_may_be_texts_and_fractions():
    found = exact(
        discreet.histogram, [0.2, 0.5, 0.9], bins=["0", Fraction(1, 3), "0.7", 1], epsilon=1
    )
    assert found.value.tolist() == [1, 1, 1]
    assert exact(discreet.histogram, [1, 2, 3], bins=range(1, 5), epsilon=1).value.tolist() == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("bins", "relation", "scale"),
    [(1, "add-remove", 1), (2, "change-one", 1), (3, "change-one", 2)],
)
def test_the_noise_of_a_histogram_is_as_small_as_it_may_be(bins, relation, scale):
    given = {"bins": bins, "bounds": (0, 100), "epsilon": "0.5", "neighbors": relation}
    found = discreet.histogram(np.array(AGES), **given)
    assert found.scale == scale * 2
    assert found.sensitivity == scale
    if bins == 2:  # the rest is n minus the first, if nobody can be in neither
        assert found.value.sum() == len(AGES)
        assert discreet.histogram(AGES, missing=0, **given).value.sum() == len(AGES)
        assert discreet.histogram(AGES, **given).sensitivity == 2


def test_a_projected_histogram_is_not_negative_and_adds_up():
    given = {"bins": 20, "bounds": (0, 100), "epsilon": "0.05"}
    found = discreet.histogram(np.array(AGES), **given)
    assert found.projected().min() >= 0
    assert found.projected().sum() == pytest.approx(len(AGES))
    for found in (
        discreet.histogram(AGES, **given),
        discreet.histogram(AGES, **given, neighbors="add-remove"),
    ):
        assert found.projected().sum() == pytest.approx(max(0, found.value.sum()))


def test_a_bracket_costs_a_quarter_and_without_it_the_note_tells_the_ranks():
    bracketed = discreet.median(AGES, bounds=(0, 100), epsilon=1)
    alone = discreet.median(AGES, bounds=(0, 100), epsilon=1, confidence=None)
    assert (bracketed.scale, alone.scale) == (Fraction(8, 3), 2)
    assert "ranks" in alone.note
    assert alone.interval() == bracketed.interval("0.99") == (0.0, 100.0)


def test_the_calls_spend_exactly_epsilon():
    for name in [*BOUNDED, *UNBOUNDED]:
        assert call_of(name)(AGES, epsilon="0.3").epsilon == Fraction(3, 10), name


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_summary_spends_half_on_the_moments_and_a_sixth_on_each_quartile(relation):
    found = discreet.summary(AGES, bounds=(0, 100), epsilon=6, neighbors=relation)
    assert [found[name].epsilon for name in ("mean", "std")] == [3, 3]
    assert [found[name].epsilon for name in ("lower_quartile", "median", "upper_quartile")] == [
        1,
        1,
        1,
    ]
    assert found.epsilon == 6


# Releases


def test_a_release_reads_as_a_number_with_its_error():
    with no_noise():
        found = discreet.mean(np.array(AGES), bounds=(0, 100), epsilon="0.1")
        # the bounds cut the interval
        assert repr(found) == "46 (0 to 100, 95 %)   ε 0.1 · Δ 12.5 · change-one"
        assert found.note == ""
        found = discreet.mean(AGES, bounds=(0, 100), epsilon="0.1")
        assert (
            repr(found)
            == "46 (0 to 100, 95 %)   ε 0.1 · Δ 100 · change-one · missing values dropped"
        )
        assert found.note == "missing values dropped"
        found = discreet.mean(AGES, bounds=(0, 100), epsilon="0.1", missing="12.5")
        assert repr(found).endswith(" · Δ 12.5 · change-one · missing values count as 12.5")
        found = discreet.max(AGES, bounds=(0, 100), epsilon=1)
        assert found.note == "about 6 records lie above; missing values dropped"
        total = discreet.sum(np.array(AGES), bounds=(0, 100), epsilon=1, neighbors="add-remove")
    assert repr(total) == "368 ± 300 (95 %)   ε 1 · Δ 100 · add-remove"
    fine = discreet.mean(np.full(10**4, 54.3), bounds=(0, 120), epsilon="0.1", missing=0)
    whole = (
        r"\d+\.\d+ ± 0\.\d+ \(95 %\)   ε 0\.1 · Δ 0\.012 · change-one · missing values count as 0"
    )
    assert re.fullmatch(whole, repr(fine))
    several = repr(discreet.histogram(AGES, bins=9, bounds=(0, 100), epsilon=1))
    assert "… 9 numbers" in several
    assert "95 % each" in several


def test_arithmetic_is_post_processing():
    with no_noise():
        total = discreet.sum(np.array(AGES), bounds=(0, 100), epsilon=1)
        other = discreet.count(np.array(AGES), epsilon=2)
    low, high = total.interval()
    for shifted in (total + 5, 5 + total):
        assert shifted.value == 373
        assert shifted.interval() == (low + 5, high + 5)
    assert (total - 5).value == 363
    assert (5 - total).interval() == (5 - high, 5 - low)
    assert (-total).interval() == (-high, -low)
    assert (total * 2).scale == total.scale * 2
    assert (-2 * total).interval() == (-2 * high, -2 * low)
    assert (total / 4).interval() == (low / 4, high / 4)
    assert (total / np.float32(0.5)).value == 736
    assert (total * np.int64(2)).sensitivity == 200
    assert (total * Fraction(1, 2)).value == 184
    both = total + other
    assert both.epsilon == 3
    assert both.value == 376
    assert both.interval()[1] - both.interval()[0] > high - low
    assert (total * other).value == 368 * 8
    assert (total - other).value == 360
    assert (total + total).epsilon == 1


@pytest.mark.parametrize("other", ["1", None, True, [1], object()])
def test_arithmetic_with_what_is_no_number_is_refused(other):
    total = discreet.sum(AGES, bounds=(0, 100), epsilon=1)
    for act in (
        lambda: total + other,
        lambda: total - other,
        lambda: total * other,
        lambda: total / other,
        lambda: other - total,
    ):
        with pytest.raises(TypeError):
            act()


@pytest.mark.parametrize("other", [0, 0.0, math.inf, math.nan])
def test_a_release_is_not_scaled_by_what_has_no_meaning(other):
    total = discreet.sum(AGES, bounds=(0, 100), epsilon=1)
    with pytest.raises(TypeError):
        total / other
    with pytest.raises(TypeError):
        total * other


def test_a_ratio_has_an_interval_as_wide_as_its_parts_say():
    with no_noise():
        total = discreet.sum(np.array(AGES), bounds=(0, 100), epsilon=1000)
        count = discreet.count(np.array(AGES), epsilon=1000)
        nearly_none = discreet.count(np.array(AGES), epsilon="0.1")
        none = discreet.count([], epsilon=1)
    ratio = total / count
    assert ratio.value == 46
    low, high = ratio.interval()
    assert low <= 46 <= high
    assert high - low < 1
    assert (total / nearly_none).interval() == (-math.inf, math.inf)
    assert math.isnan((total / none).value)
    assert "inf" in repr(total / nearly_none)
    with pytest.raises(InvalidParameter, match="ratio"):
        discreet.histogram(AGES, bins=3, bounds=(0, 100), epsilon=1) / count


def test_a_release_is_a_number_to_python_and_numpy():
    with no_noise():
        total = discreet.sum(np.array(AGES), bounds=(0, 100), epsilon=1)
        mean = discreet.mean(np.array([1, 2]), bounds=(0, 100), epsilon=1)
        bins = discreet.histogram(AGES, bins=4, bounds=(0, 100), epsilon=1)
    assert float(total) == 368.0
    assert int(total) == 368
    assert int(mean * 1) == 2
    assert np.asarray(total) == 368
    assert np.asarray(bins).tolist() == list(bins) == [2, 3, 1, 2]
    assert np.asarray(bins, float).dtype == float
    assert len(bins) == 4
    assert bins[1] == 3
    assert (bins + 1).value.tolist() == [3, 4, 2, 3]
    array = np.asarray(bins)
    array[0] = 99
    assert bins[0] == 2  # a copy
    with pytest.raises(TypeError):
        len(total)
    with pytest.raises(AttributeError):
        total.value = 3


def test_accuracy_is_the_larger_half_of_the_interval():
    found = discreet.histogram(AGES, bins=5, bounds=(0, 100), epsilon="0.2")
    low, high = found.interval("0.9")
    assert np.array_equal(found.accuracy("0.9"), np.maximum(found.value - low, high - found.value))
    total = discreet.sum(AGES, bounds=(0, 100), epsilon=1)
    assert total.accuracy() == pytest.approx((total.interval()[1] - total.interval()[0]) / 2)
    assert total.accuracy("0.99") > total.accuracy("0.95") > total.accuracy("0.5")
    with pytest.raises(InvalidParameter, match="confidence"):
        total.accuracy(1)


@pytest.mark.parametrize("relation", RELATIONS)
def test_simultaneous_intervals_are_wider(relation):
    found = discreet.histogram(AGES, bins=50, bounds=(0, 100), epsilon=1, neighbors=relation)
    assert np.all(found.accuracy(simultaneous=True) > found.accuracy())
    few = discreet.quantiles(
        AGES * 100, ["0.1", "0.9"], bounds=(0, 100), epsilon=10, neighbors=relation
    )
    assert np.all(few.accuracy(simultaneous=True) >= few.accuracy())


def test_joint_releases_are_a_mapping():
    found = discreet.summary(np.array(AGES), bounds=(0, 100), epsilon=1)
    assert list(found) == ["count", "mean", "std", "lower_quartile", "median", "upper_quartile"]
    assert len(found) == 6
    assert found["mean"] is found.mean
    assert found.count.value == len(AGES)
    assert found.count.interval() == (len(AGES), len(AGES))
    assert "mean" in found
    with pytest.raises(AttributeError, match="it has count"):
        _ = found.variance
    with pytest.raises(KeyError):
        found["variance"]
    assert set(found.interval()) == set(found)
    low, high = found.interval()["mean"]
    assert high - low >= found.mean.interval()[1] - found.mean.interval()[0]
    lines = repr(found).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "ε 1 in all · change-one"
    for relation in RELATIONS:
        private = discreet.summary(AGES, bounds=(0, 100), epsilon=1, neighbors=relation)
        assert private.count.scale > 0
        assert repr(private).endswith(f"ε 1 in all · {relation} · missing values dropped")
    assert list(discreet.mean_and_std(AGES, bounds=(0, 100), epsilon=1)) == ["mean", "std"]


def test_std_is_the_root_of_the_variance_and_samples_have_one_fewer():
    given = {"bounds": (0, 100), "epsilon": 1}
    for relation in RELATIONS:
        with no_noise():
            variance = discreet.variance(AGES, neighbors=relation, **given)
            std = discreet.std(AGES, neighbors=relation, **given)
            sample = discreet.variance(AGES, sample=True, neighbors=relation, **given)
        assert std.value == pytest.approx(math.sqrt(variance.value))
        assert std.interval() == pytest.approx(tuple(map(math.sqrt, variance.interval())))
        assert sample.value == pytest.approx(variance.value * 8 / 7)
