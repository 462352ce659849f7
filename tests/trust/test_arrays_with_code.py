"""TRUST 61 for arrays: data with code of its own is read once, before the spend, or refused without
showing a value.

A subclass of a container or of a number, or an object that numpy, Arrow or pandas asks for its
values, runs its own code. Here that code notes what was spent when it ran, and then raises an error
that quotes the data, or goes on. The control is numpy itself, which runs the code of a subclass in
every calculation.
"""

import traceback
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet import DiscreetError, InvalidParameter, Ledger

SECRET = 918_273
VALUES = [SECRET, 18, 65, 40]
SPEAKS = f"the salary is {SECRET}"


class Escapes(BaseException):
    """An error that `except Exception` lets through."""


class Code:
    """What the code of the data does: it notes what was spent when it ran, and raises, or goes on."""

    def __init__(self, ledger):
        self.ledger, self.error, self.spent = ledger, None, []

    def __call__(self, going_on):
        self.spent.append(self.ledger.spent("survey"))
        if self.error is not None:
            raise self.error(SPEAKS)
        return going_on()


def subclass(base, code, names):
    """A subclass whose methods of these names run the code first."""

    def method(name):
        inherited = getattr(base, name)

        def run(self, *args, **named):
            return code(lambda: inherited(self, *args, **named))

        return run

    return type(f"Own{base.__name__}", (base,), {name: method(name) for name in names})


ARRAY = (
    *(
        "__array_ufunc__",
        "__array_function__",
        "__array_finalize__",
        "__getitem__",
        "__iter__",
        "__len__",
        "__array__",
    ),
    *("__array_wrap__", "__eq__", "__ne__", "__lt__", "__reduce__", "__repr__", "__getattribute__"),
    *("astype", "view", "tolist", "reshape", "copy", "ravel", "sum", "item"),
)
LIST = ("__iter__", "__len__", "__getitem__", "__contains__", "__eq__", "__repr__", "index", "copy")
NUMBER = (
    *(
        "__float__",
        "__int__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__gt__",
        "__le__",
        "__ge__",
        "__hash__",
        "__add__",
    ),
    *("__repr__", "__str__", "__bool__", "as_integer_ratio", "__getattribute__"),
)
SERIES = (
    "to_numpy",
    "__len__",
    "__iter__",
    "__array__",
    "__getitem__",
    "tolist",
    "astype",
    "notna",
    "isna",
    "copy",
)


def arrays(code):
    """Arrays with code of their own, by name."""
    for kind, names in {"ndarray": ARRAY[:-8], "methods": ARRAY[-8:]}.items():
        base = subclass(np.ndarray, code, names)
        for dtype in ("int64", "float64", "object"):
            yield f"{kind} {dtype}", np.array(VALUES, dtype).view(base)
    yield (
        "masked",
        np.ma.array(VALUES, mask=[0, 1, 0, 0]).view(
            subclass(np.ma.MaskedArray, code, ("filled", "astype"))
        ),
    )
    yield (
        "masked floats",
        np.ma.array(np.array(VALUES, float)).view(subclass(np.ma.MaskedArray, code, ARRAY[:4])),
    )
    yield "list", subclass(list, code, LIST)(VALUES)
    yield "tuple", subclass(tuple, code, LIST[:-1])(VALUES)


def numbers(code):
    """Lists of items with code of their own, by name."""
    for base in (int, float, np.float64, np.int64, Decimal, Fraction, str):
        names = [name for name in NUMBER if hasattr(base, name)]
        own = subclass(base, code, names)
        yield f"items {base.__name__}", [own(value) for value in VALUES]
        array = np.empty(len(VALUES), object)
        array[:] = [own(value) for value in VALUES]
        yield f"objects {base.__name__}", array
    day = subclass(date, code, ("isoformat", "__eq__", "__ne__", "__str__"))
    yield "items date", [day(2026, 11, 19)] * 4
    time = subclass(
        datetime, code, ("isoformat", "__eq__", "__ne__", "__str__", "astimezone", "utcoffset")
    )
    yield "items datetime", [time(2026, 11, 19)] * 4


def objects(code):
    """Objects that are asked for their values, by name."""

    def of(**methods):
        return type("Data", (), methods)()

    def answers(value):
        return lambda _self, *_, **__: code(lambda: value)

    plain = np.array(VALUES, float)
    own = plain.view(subclass(np.ndarray, code, ARRAY[:5]))
    turns = iter([plain, 2 * plain, 3 * plain, 4 * plain])
    yield "__array__", of(__array__=answers(plain))
    yield "__array__ of a subclass", of(__array__=lambda _self, *_, **__: own)
    yield (
        "__array__ with another answer each time",
        of(__array__=lambda _self, *_, **__: code(lambda: next(turns))),
    )
    yield (
        "__array_interface__",
        of(__array_interface__=property(answers(plain.__array_interface__))),
    )
    yield "__arrow_c_array__", of(__arrow_c_array__=answers(pa.array(VALUES).__arrow_c_array__()))
    yield (
        "__arrow_c_stream__",
        of(__arrow_c_stream__=answers(pa.chunked_array([VALUES]).__arrow_c_stream__())),
    )
    yield "to_numpy", of(to_numpy=answers(plain))
    yield "to_numpy of a subclass", of(to_numpy=lambda _self: own)
    yield "to_numpy of a list", of(to_numpy=lambda _self: subclass(list, code, LIST)(VALUES))
    yield (
        "sequence",
        of(__len__=answers(4), __getitem__=lambda _self, index: code(lambda: VALUES[index])),
    )
    yield "attributes", of(__getattr__=lambda _self, _name: code(lambda: plain))
    yield "class", of(__class__=property(answers(list)))
    yield "iterator", iter([lambda: VALUES])
    yield "generator", (code(lambda: SECRET) for _ in VALUES)


def columns(code):
    """Columns of pandas with code of their own, by name."""
    own = subclass(pd.Series, code, SERIES)
    yield "series", own(VALUES)
    yield "series of objects", own([str(value) for value in VALUES], dtype=object)
    extension = subclass(
        pd.arrays.IntegerArray, code, ("to_numpy", "__len__", "__getitem__", "isna", "__array__")
    )
    yield "extension", pd.Series(extension(np.array(VALUES), np.zeros(4, bool)))
    yield "extension alone", extension(np.array(VALUES), np.zeros(4, bool))


KINDS = (arrays, numbers, objects, columns)
BOUNDS = {"bounds": (0, 120)}
CALLS = {
    "count": discreet.count,
    "sum": lambda x, **more: discreet.sum(x, **BOUNDS, **more),
    "mean": lambda x, **more: discreet.mean(x, **BOUNDS, **more),
    "proportion": discreet.proportion,
    "variance": lambda x, **more: discreet.variance(x, **BOUNDS, **more),
    "std of the textbook": lambda x, **more: discreet.std(
        x, **BOUNDS, missing=0, method="laplace", **more
    ),
    "mean_and_std": lambda x, **more: discreet.mean_and_std(x, **BOUNDS, **more),
    "summary": lambda x, **more: discreet.summary(x, **BOUNDS, **more),
    "median": lambda x, **more: discreet.median(x, **BOUNDS, **more),
    "median of the textbook": lambda x, **more: discreet.median(
        x, **BOUNDS, missing=0, method="laplace", **more
    ),
    "quantiles": lambda x, **more: discreet.quantiles(x, [0.25, 0.75], **BOUNDS, **more),
    "min": lambda x, **more: discreet.min(x, **BOUNDS, **more),
    "max": lambda x, **more: discreet.max(x, **BOUNDS, **more),
    "cdf": lambda x, **more: discreet.cdf(x, **BOUNDS, cells=8, **more),
    "bounds": discreet.bounds,
    "histogram": lambda x, **more: discreet.histogram(x, bins=[0, 18, 120], **more),
    "histogram of keys": lambda x, **more: discreet.histogram(
        x, keys=[18, 65], other="other", **more
    ),
    "value_counts of texts": lambda x, **more: discreet.value_counts(x, keys=["18", "65"], **more),
    "value_counts of dates": lambda x, **more: discreet.value_counts(
        x, keys=[date(2026, 11, 19)], **more
    ),
    "laplace_mechanism": lambda x, **more: discreet.laplace_mechanism(x, sensitivity=1, **more),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", 1_000_000)
        yield opened


def assert_silent(error, name):
    """Neither the words and notes of an error, nor those of the errors before it, nor a traceback
    show a value.
    """
    words, todo = traceback.format_exception(error), [error]
    while todo:
        shown = todo.pop()
        if shown is not None:
            words += [repr(shown), str(shown), *getattr(shown, "__notes__", [])]
            todo += [shown.__cause__, shown.__context__]
    assert str(SECRET) not in "\n".join(words), name


@pytest.mark.parametrize("error", [None, ValueError, Escapes])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("call", CALLS)
def test_code_of_the_data_runs_before_the_spend_and_shows_nothing(ledger, call, kind, error):
    quiet = Code(ledger)
    for name in dict(kind(quiet)):
        code = Code(ledger)
        data = dict(kind(code))[name]
        before, code.spent, code.error = ledger.spent("survey"), [], error
        try:
            CALLS[call](data, epsilon=25, ledger=ledger, study="survey")
        except InvalidParameter as refusal:
            assert_silent(refusal, name)
            assert ledger.spent("survey") == before, name
        else:
            assert ledger.spent("survey") == before + 25, name
        assert set(code.spent) <= {before}, name


def frames(code):
    """Tables with code of their own, by name."""

    def failing(*_, **__):
        code(lambda: None)
        raise ValueError(SPEAKS)

    table = {"age": VALUES * 10}
    for name in ("copy", "iloc", "columns", "shape"):
        yield (
            name,
            type(
                "Frame", (pd.DataFrame,), {name: failing if name == "copy" else property(failing)}
            )(table),
        )
    for name in ("read_all", "to_table", "__arrow_c_stream__", "__getattr__"):
        yield name, type("Table", (), {name: failing})()
    base = pd.arrays.IntegerArray
    for name in ("__arrow_array__", "to_numpy", "__getitem__"):
        extension = type("Extension", (base,), {name: failing})
        yield (
            f"extension {name}",
            pd.DataFrame({"age": pd.Series(extension(np.array(VALUES), np.zeros(4, bool)))}),
        )
    schema = pa.schema({"age": pa.int64()})
    yield "reader", pa.RecordBatchReader.from_batches(schema, (failing() for _ in VALUES))
    for name, data in numbers(code):
        yield name, pd.DataFrame({"age": pd.Series(list(data) * 10, dtype=object)})


@pytest.mark.parametrize("error", [None, ValueError, Escapes])
def test_a_study_reads_a_frame_once_when_it_is_opened(tmp_path, ledger, error):
    for name in dict(frames(Code(ledger))):
        code = Code(ledger)
        data = dict(frames(code))[name]
        code.error = error
        policy = discreet.Policy(source=data, epsilon=1, columns={"age": {"bounds": (0, 120)}})
        study = discreet.Study(policy, ledger=tmp_path / f"{name}.ledger")
        try:
            plan = study.sql("SELECT avg(age) FROM data", epsilon=1)
        except DiscreetError as refusal:
            assert_silent(refusal, name)
            assert study.remaining == 1, name
            continue
        ran, code.error = len(code.spent), Escapes
        plan.release()
        assert len(code.spent) == ran, name


@pytest.mark.parametrize("error", [ValueError, Escapes])
def test_a_source_that_does_not_say_its_class_is_refused_and_shows_nothing(tmp_path, error):
    class Source:
        @property
        def __class__(self):
            raise error(SPEAKS)

        def __getattr__(self, name):
            raise error(SPEAKS)

    policy = discreet.Policy(source=Source(), epsilon=1, columns={"age": {"bounds": (0, 120)}})
    assert str(SECRET) not in repr(policy)
    study = discreet.Study(policy, ledger=tmp_path / "one.ledger")
    with pytest.raises(
        InvalidParameter, match="the frame cannot be read: its own code failed"
    ) as caught:
        study.sql("SELECT avg(age) FROM data", epsilon=1)
    assert_silent(caught.value, "source")


@pytest.mark.parametrize("error", [ValueError, Escapes])
def test_a_path_whose_own_code_fails_is_refused_or_read_without_it(error):
    def fails(*_):
        raise error(SPEAKS)

    methods = dict.fromkeys(
        ("__str__", "__repr__", "__fspath__", "__format__", "strip", "startswith"), fails
    )
    text, path = type("Text", (str,), methods), type("Place", (type(Path()),), methods)
    for source in (text("people.csv"), [text("people.csv"), "more.csv"]):
        policy = discreet.Policy(source=source, epsilon=1, columns={"age": BOUNDS})
        assert policy.source in ("people.csv", ("people.csv", "more.csv"))
        assert type(policy.source) in (str, tuple)
        assert str(SECRET) not in repr(policy)
    for source in (path("people.csv"), ["more.csv", path("people.csv")]):
        with pytest.raises(
            InvalidParameter, match="its path cannot be read: its own code failed"
        ) as caught:
            discreet.Policy(source=source, epsilon=1, columns={"age": BOUNDS})
        assert_silent(caught.value, "source")


@pytest.mark.parametrize("error", [None, ValueError, Escapes])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_randomized_response_shows_nothing_of_the_data(ledger, kind, error):
    for name in dict(kind(Code(ledger))):
        code = Code(ledger)
        data = dict(kind(code))[name]
        code.error = error
        try:
            response = discreet.randomized_response(data, epsilon=1)
        except InvalidParameter as refusal:
            assert_silent(refusal, name)
        else:
            assert type(response.bits) is np.ndarray, name


def test_data_that_answers_otherwise_each_time_is_read_once(ledger):
    """Counted twice, the two readings could be told apart: one decides the grid, another is
    released.
    """
    for name in ("__array__ with another answer each time", "items int", "list"):
        code = Code(ledger)
        data = {**dict(objects(code)), **dict(numbers(code)), **dict(arrays(code))}[name]
        code.spent = []
        noisy = discreet.laplace_mechanism(data, sensitivity=1, epsilon=10**6)
        assert [round(number) for number in list(noisy)] == VALUES
        assert len(code.spent) <= 2, name


@pytest.mark.parametrize("values", [np.array(VALUES), np.array(VALUES, float)])
def test_an_output_array_with_code_of_its_own_is_filled_without_it(ledger, values):
    code = Code(ledger)
    out = values.view(subclass(np.ndarray, code, [*ARRAY, "__setitem__"]))
    code.spent, code.error = [], ValueError
    for more in ({}, {"ledger": ledger, "study": "survey"}):
        found = discreet.laplace_mechanism(values, sensitivity=1, epsilon=1000, out=out, **more)
        assert found is out
        assert not code.spent
    assert np.abs(values - np.array(VALUES)).max() < 1
    assert ledger.spent("survey") == 1000


def test_an_output_array_with_a_mask_is_refused_before_the_spend(ledger):
    with pytest.raises(InvalidParameter, match="out must be a writeable array"):
        discreet.laplace_mechanism(
            np.array(VALUES),
            sensitivity=1,
            epsilon=1,
            out=np.ma.array(VALUES),
            ledger=ledger,
            study="survey",
        )
    assert ledger.spent("survey") == 0


def test_numpy_itself_runs_the_code_of_the_data(ledger):
    """The control: what these classes do is what would have run after the spend."""
    code = Code(ledger)
    data = dict(arrays(code))["ndarray int64"]
    code.error = ValueError
    with pytest.raises(ValueError, match=str(SECRET)):
        np.multiply(data, 2)
