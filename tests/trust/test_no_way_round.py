"""TRUST 11: nothing but a release says anything about the data: no repr, copy, comparison, message
or closure does.
"""

import copy
import gc
import math
import pickle
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import InvalidParameter
from discreet.engines import array as engine
from discreet.engines.array import Column, column
from discreet.engines.base import Exact
from discreet.release.question import question
from noiseless import no_noise
from studies import Paper, select, study_of

CHECK = "cli/check/inspection.py"
"""What counts exactly for the custodian, beside the mechanism."""

CANARY = 7319.0625
"""A value that no parameter has; its digits must appear nowhere."""

SOURCE = Path(discreet.__file__).parent

SECRETS = {
    "exact number": lambda: Exact(CANARY),
    "exact list": lambda: Exact([CANARY]),
    "exact array": lambda: Exact(np.full(3, CANARY)),
    "mapped": lambda: Exact(1).map(lambda _: CANARY),
    "column": lambda: column([CANARY]),
    "column of an array": lambda: column(np.full(3, CANARY)),
    "moments": lambda: engine.count(column([CANARY])),
    "question": lambda: question("mean", [CANARY], (0, 10_000), 1, "change-one"),
}


def shows_canary(text: str) -> bool:
    """Whether the digits appear, whatever the form of the number."""
    return "7319" in re.sub(r"[,_ ]", "", text)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_shows_nothing(name):
    for show in (repr, str, format, ascii, "{0}".format, "{0!r}".format):
        assert not shows_canary(show(SECRETS[name]())), show


def test_the_search_for_the_canary_finds_it():
    assert shows_canary(repr([CANARY]))
    assert shows_canary(f"{CANARY:,}")
    assert shows_canary(str(np.full(3, CANARY)))


@pytest.mark.parametrize("name", [name for name in SECRETS if name != "question"])
def test_a_secret_cannot_be_compared_copied_stored_or_hashed(name):
    secret, other = SECRETS[name](), SECRETS[name]()
    for act in (
        lambda: secret == other,
        lambda: secret != other,
        lambda: secret == CANARY,
        lambda: secret < other,
        lambda: hash(secret),
        lambda: copy.copy(secret),
        lambda: copy.deepcopy(secret),
        lambda: pickle.dumps(secret),
        lambda: float(secret),
        lambda: secret + 1,
    ):
        with pytest.raises(TypeError) as caught:
            act()
        assert not shows_canary(str(caught.value))


def test_a_question_is_stored_nowhere():
    asked = SECRETS["question"]()
    with pytest.raises(TypeError):
        pickle.dumps(asked)
    assert asked != SECRETS["question"]()  # only itself


def test_only_the_mechanism_opens_a_secret():
    callers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if ".reveal(" in path.read_text("utf-8")
    }
    assert callers == {"release/mechanism.py", CHECK}


def test_what_a_custodian_is_shown_cannot_be_reached_by_a_study_or_a_server():
    """It lies in `cli`, above the server and the studies: the import contract holds them below."""
    importing = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"cli\.check|rows_of_units\(|\.frequent\(", path.read_text("utf-8"))
    }
    inside = {
        "engines/sql/engine.py",
        "engines/sql/frequent.py",
        "cli/app.py",
        CHECK,
        "cli/check/command.py",
    }
    assert importing == inside | {
        "cli/check/sample.py",
        "cli/init/command.py",
        "cli/init/interview.py",
    }  # shows no cell
    assert "discreet.ledger" not in (SOURCE / CHECK).read_text("utf-8")


def test_only_replays_and_certificates_note_what_the_mechanism_opens():
    """They subclass the secret, and give nothing of it out but pass or fail; certificates invent
    their rows.
    """

    def modules(text: str) -> set[str]:
        sources = {
            path.relative_to(SOURCE).as_posix(): path.read_text("utf-8")
            for path in SOURCE.rglob("*.py")
        }
        return {name for name, source in sources.items() if text in source}

    assert modules("(Exact[") == {"verify/recorded.py"}
    assert modules("Watched") == {"verify/recorded.py", "verify/rerun.py", "verify/choices.py"}


def test_nothing_reaches_into_a_secret_by_another_name():
    for path in SOURCE.rglob("*.py"):
        assert "_Exact__" not in path.read_text("utf-8"), path.name


# Calls: refused and accepted, with every item that could raise or show itself.


class Loud:
    """An item of the data that raises its own value from wherever it is touched."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError(f"the value is {CANARY}")

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __array__ = _raise
    __lt__ = __gt__ = __le__ = __ge__ = __add__ = __mul__ = _raise
    as_integer_ratio = _raise

    def __repr__(self) -> str:
        return f"Loud({CANARY})"


class Huge(Loud):
    """An item that claims to be beyond the floats, and cannot be compared."""

    def __float__(self) -> float:
        raise OverflowError(f"{CANARY} is too large")


BOUNDS = (0, 10_000)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": lambda x, bounds, **given: discreet.count(x, **given),  # noqa: ARG005
    "proportion": lambda x, bounds, **given: discreet.proportion(x, **given),  # noqa: ARG005
    "histogram": lambda x, **given: discreet.histogram(x, bins=4, **given),
    "value_counts": lambda x, bounds, **given: discreet.value_counts(x, keys=[1, 2], **given),  # noqa: ARG005
    "quantile": lambda x, **given: discreet.quantile(x, "0.9", **given),
    "quantiles": lambda x, **given: discreet.quantiles(x, ["0.1", "0.9"], **given),
    "deciles": lambda x, **given: discreet.quantiles(x, [f"0.{k}" for k in range(1, 10)], **given),
    "textbook median": lambda x, **given: discreet.median(x, method="laplace", **given),
    "textbook std": lambda x, **given: discreet.std(x, method="laplace", missing=50, **given),
    **{
        name: getattr(discreet, name)
        for name in (
            "sum",
            "mean",
            "variance",
            "std",
            "median",
            "min",
            "max",
            "cdf",
            "mean_and_std",
            "summary",
        )
    },
}
COLUMNS = {
    "list": [CANARY, CANARY],
    "words": ["7319.0625", "7319"],
    "loud": [Loud(), CANARY],
    "huge": [Huge(), CANARY],
    "large": [1e308, 10**400, CANARY],
    "nested": [[CANARY], [CANARY]],
    "array": np.full(2, CANARY),
    "objects": np.fromiter([Loud(), CANARY], object, 2),
    "complex": [complex(CANARY, 1), CANARY],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_accepted_call_raises_nothing_whatever_the_data(name):
    for kind, data in COLUMNS.items():
        answer = FUNCTIONS[name](data, bounds=BOUNDS, epsilon="1e-3")
        assert repr(answer), kind


REFUSED: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 0},
    "bounds": {"bounds": (5, 1)},
    "relation": {"neighbors": "both"},
}
BAD_COLUMNS = {
    "a column of words": np.array(["7319.0625"]),
    "a column of bytes": np.array([b"7319.0625"]),
    "complex": np.array([CANARY + 1j]),
    "two dimensions": np.full((2, 2), CANARY),
    "a date": np.array(["7319-06-25"], "datetime64[D]"),
    "a number": CANARY,
    "a word": "7319.0625",
    "a set": {CANARY},
    "a dictionary": {"a": CANARY},
    "a generator": (value for value in [CANARY]),
    "loud": Loud(),
}


TAKEN = {
    "count": ("a column of words", "a column of bytes", "complex", "a date"),
    "value_counts": ("a column of words",),
}
"""Columns that are no numbers and can be counted."""


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(discreet.InvalidParameter) as caught:
        call()
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("wrong", REFUSED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_refused_call_says_nothing_of_the_data(name, wrong):
    if wrong == "bounds" and name in ("count", "proportion", "value_counts"):
        return
    given = {"bounds": BOUNDS, "epsilon": 1, **REFUSED[wrong]}
    for data in COLUMNS.values():
        assert not shows_canary(said(lambda data=data: FUNCTIONS[name](data, **given)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_refused_column_is_not_quoted(name):
    for kind, data in BAD_COLUMNS.items():
        call = partial(FUNCTIONS[name], data, bounds=BOUNDS, epsilon=1)
        assert not shows_canary(repr(call()) if kind in TAKEN.get(name, ()) else said(call)), kind


def reachable(start: Any) -> Iterator[Any]:
    """All that is held by an object, through closures and containers, but not through modules and
    types.
    """
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type) or type(one).__name__ == "module":
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or ()]
            waiting += one.__defaults__ or ()
        elif isinstance(one, np.ndarray):
            waiting += [one.base] if one.base is not None else []
        else:
            waiting += gc.get_referents(one)


@pytest.mark.parametrize("relation", ["change-one", "add-remove"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_release_does_not_hold_on_to_the_data(name, relation):
    if name == "textbook std" and relation == "add-remove":
        return
    x = np.full(50, CANARY)
    held = list(reachable(FUNCTIONS[name](x, bounds=BOUNDS, epsilon=1, neighbors=relation)))
    assert not any(isinstance(one, Column | Exact) or one is x for one in held)


def test_what_a_closure_holds_is_found():
    held = column([CANARY])
    assert any(one is held for one in reachable(lambda: held))


@pytest.mark.parametrize("relation", ["change-one", "add-remove"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_call_answers_without_a_draw(name, relation):
    """Also where nobody is: every number that depends on a row has had noise."""
    if name == "textbook std" and relation == "add-remove":
        return
    for x in ([CANARY], [CANARY, 1.0], [None, None]):
        with no_noise() as record:
            if name == "textbook std" and len(x) == 1:
                continue
            FUNCTIONS[name](x, bounds=BOUNDS, epsilon=1, neighbors=relation)
        assert record.draws > 0


def test_no_public_function_has_a_switch_for_the_noise():
    """The parameters are those that are known to be harmless; a new one has to be added here by
    hand.
    """
    harmless = {
        *("x", "q", "qs", "bounds", "epsilon", "neighbors", "missing", "method", "confidence"),
        *("sample", "bins", "cells", "keys", "other", "sort"),
    }
    for name in FUNCTIONS:
        function = getattr(discreet, name, None)
        if function is not None:
            code = function.__code__
            assert set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) <= harmless, (
                name
            )


def test_epsilon_is_never_more_than_was_asked_for():
    for name, call in FUNCTIONS.items():
        answer = call([1.0, 2.0, math.nan], bounds=BOUNDS, epsilon="1/3")
        assert answer.epsilon == Fraction(1, 3), name


def test_a_plan_whose_shares_do_not_add_up_to_its_epsilon_is_not_released(tmp_path):
    study = study_of([{"age": 1, "well": True}], Paper())
    plan = study.sql(select("sum(age), avg(pay)", "WHERE well"), epsilon="2")
    less = tuple(replace(share, epsilon=share.epsilon / 2) for share in plan.shares)
    changes = [{"epsilon": Fraction(1, 1000)}, {"shares": plan.shares[:1]}, {"shares": less}]
    for changed in (replace(plan, **change) for change in changes):
        for given in ({}, {"to": tmp_path / "answer.parquet"}):
            with pytest.raises(InvalidParameter, match="add up"):
                changed.release(**given)
    assert (study.spent, list(tmp_path.iterdir())) == (0, [])
    assert plan.release().record["epsilon"] == "2"
