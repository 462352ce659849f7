"""TRUST 48: a question that is paid for has one answer: whatever fails after the spend, asking
again shows one draw.

A failure is put before each function of discreet that runs between the spend and the answer, one at
a time (the profiler of Python counts calls, and raises at the wanted one). Then the same request is
asked again, twice. And nothing fails there for a reason that was known before: whatever parameters
a plan accepts, its release succeeds.
"""

import itertools
import json
import random
import sys
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import discreet
from discreet import DiscreetError, InvalidParameter, Ledger, Policy, QueryRefused, Study
from discreet.files.add_noise import add_noise
from discreet.release import standing
from studies import Paper

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""A failure may be injected where a generator ends: Python can only say so."""

SOURCE = str(Path(discreet.__file__).parent)
FAILURES = (OSError, MemoryError, KeyboardInterrupt, ValueError)


class Steps:
    """Counts the calls of our functions after a spend, and fails at one of them."""

    def __init__(self, at: int | None = None, kind: type[BaseException] = OSError) -> None:
        self.at, self.kind, self.names, self.spent = at, kind, [], False

    def begin(self, spend):
        """The same spend, after which calls are counted: before it, counting would take longer than
        the work.
        """

        def spent(*given, **named):
            grant = spend(*given, **named)
            self.spent = True
            sys.setprofile(self)
            return grant

        return spent

    def __call__(self, frame, event, _argument) -> None:
        if event == "call" and (code := frame.f_code).co_filename.startswith(SOURCE):
            self.names.append((code.co_filename, code.co_qualname))
            if len(self.names) - 1 == self.at:
                sys.setprofile(None)  # nothing more to count
                raise self.kind("injected")


def run(act, steps: Steps | None):
    if steps is None:  # counting takes as long as the work
        return act()
    before = sys.getprofile()
    try:
        with mock.patch.object(Ledger, "spend", steps.begin(Ledger.spend)):
            return act()
    finally:
        sys.setprofile(before)


def first_calls(act) -> list[int]:
    """Where each function is called for the first time."""
    steps = Steps()
    run(act, steps)
    assert steps.spent
    seen: dict[tuple[str, str], int] = {}
    for at, name in enumerate(steps.names):
        seen.setdefault(name, at)
    return sorted(seen.values())


@pytest.fixture
def study(in_memory):
    table = pa.table({"place": ["a", "b"] * 50, "age": [float(at) for at in range(100)]})
    columns = {"place": {"keys": ["a", "b"]}, "age": {"bounds": [0, 120]}}
    with Study(
        Policy(source=table, epsilon=10**6, columns=columns), ledger=in_memory / "study.ledger"
    ) as made:
        yield made


def with_other_data(study: Study, version: object) -> None:
    """From now on the rows are others: the same question, whose noise is ready to be drawn, is a
    new one.
    """
    study.engine.version = lambda *_: str(version)


SQL = (
    "SELECT place, count(*) AS n, avg(age), stddev(age), median(age), max(age) FROM data GROUP BY"
    " place"
)


def test_an_answer_is_drawn_and_shown_once_wherever_it_fails(study):
    kinds = itertools.cycle(FAILURES)

    def asked(name: str):
        plan = study.sql(SQL, epsilon=1)
        return lambda: plan.release(request_id=name).content

    asked("noise is ready")()
    with_other_data(study, "first")
    places = first_calls(asked("first"))
    assert len(places) > 60
    for at in random.SystemRandom().sample(places, 40):
        with_other_data(study, at)
        release, before, shown = asked(f"r{at}"), study.spent, set()
        for steps in (Steps(at, next(kinds)), None, None):
            try:
                shown.add(run(release, steps))
            except (*FAILURES, DiscreetError):
                assert steps is not None, at
        assert len(shown) == 1, at
        assert study.spent - before == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_is_written_once_wherever_it_fails(study, tmp_path, monkeypatch):
    # after every failure another question is asked at once
    monkeypatch.setattr(standing, "_FIRST", 0)

    def planned(name: str):
        with_other_data(study, name)
        plan = study.sql(
            "SELECT place, count(*) AS n, avg(age) FROM data GROUP BY place", epsilon=1
        )
        return lambda: plan.release(to=tmp_path / f"{name}.parquet", request_id=name)

    kinds = itertools.cycle(FAILURES)
    planned("ready")()
    for at in first_calls(planned("first")):
        target, release, before = tmp_path / f"r{at}.parquet", planned(f"r{at}"), study.spent
        shown = set()
        for steps in (Steps(at, next(kinds)), None, None):
            try:
                run(release, steps)
                shown.add(target.read_bytes())
            except (*FAILURES, DiscreetError) as error:
                assert steps is not None or isinstance(error, QueryRefused), (  # noqa: PT017
                    at,
                    error,
                )
                if target.exists():
                    shown.add(target.read_bytes())
        assert len(shown) <= 1, at
        # where the very first or last step of a draft fails, it stays: its owner's alone, or the
        # published file itself
        published = [
            file for file in (target, target.with_suffix(".release.json")) if file.exists()
        ]
        for part in tmp_path.glob(".*.part"):
            assert part.stat().st_mode & 0o077 == 0 or any(
                file.samefile(part) for file in published
            )
            part.unlink()
        assert study.spent - before <= 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_noise_on_a_file_is_drawn_once_wherever_it_fails(in_memory, tmp_path):
    source = in_memory / "in.parquet"
    parquet.write_table(pa.table({"block": ["a", "b"], "people": [1, 2]}), source)
    terms = {"columns": ["people"], "keep": ["block"], "sensitivity": 1, "epsilon": 1, "study": "s"}
    with Ledger.open(in_memory / "s.ledger", new=True) as ledger:
        ledger.create("s", 10**6)

        def asked(name: str) -> bytes:
            return add_noise(
                source, tmp_path / f"{name}.parquet", ledger=ledger, request_id=name, **terms
            ).read_bytes()

        for at in first_calls(lambda: asked("first")):
            shown = set()
            for steps in (Steps(at), None, None):
                try:
                    shown.add(run(lambda: asked(f"r{at}"), steps))  # noqa: B023
                except (OSError, DiscreetError) as error:
                    assert steps is not None or isinstance(error, QueryRefused), (  # noqa: PT017
                        at,
                        error,
                    )
            assert len(shown) <= 1, at


ARRAYS = {
    "mean": lambda x, **more: discreet.mean(x, bounds=(0, 100), epsilon="0.5", **more).value,
    "quantile": (
        lambda x, **more: discreet.quantile(
            x, "0.9", bounds=(0, 100), epsilon="0.5", **more
        ).interval("0.9")
    ),
    "histogram": (
        lambda x, **more: discreet.histogram(
            x, bins=4, bounds=(0, 100), epsilon="0.5", **more
        ).value.tolist()
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_statistic_of_an_array_is_drawn_once_wherever_it_fails(name, in_memory):
    x = np.arange(100.0)
    with Ledger.open(in_memory / "s.ledger", new=True) as ledger:
        ledger.create("s", 10**6)

        def asked(request: str):
            return ARRAYS[name](x, ledger=ledger, study="s", request_id=request)

        for at in first_calls(lambda: asked("first")):
            shown = []
            for steps in (Steps(at), None, None):
                try:
                    shown.append(run(lambda: asked(f"r{at}"), steps))  # noqa: B023
                except (OSError, DiscreetError):
                    assert steps is not None, at
            assert len(shown) >= 2, at
            assert all(one == shown[0] for one in shown), at


# Parameters: a plan refuses them, or its release succeeds and can be shown in every way.

LIMITS = [
    "-1e99",
    "-9223372036854775808",
    "-1",
    "-1e-99",
    "0",
    "1e-99",
    "0.1",
    "1/3",
    "1",
    "120",
    "1e15",
    "1e18",
    "1e99",
]
EPSILONS = ["1e-9", "1e-6", "0.01", "1/3", "1", "1e3", "1e6"]
CONFIDENCES = [
    *("1e-9999", "1e-20", "1e-6", "0.01", "0.5", "0.95", "0.999999", "0.999999999"),
    *("0.9999999999", "0.99999999999999999", "0.9999999999999999999999999", "1"),
]
ASKED = [
    *(
        "count(*)",
        "count(x)",
        "sum(x)",
        "avg(x)",
        "variance(x)",
        "var_pop(x)",
        "stddev(x)",
        "median(x)",
        "sum(y)",
    ),
    *(
        "quantile(x, 0.999)",
        "min(x)",
        "max(x)",
        "avg(y)",
        "sum(x) / count(*)",
        "avg(x) * 1e90",
        "avg(x > 1)",
    ),
]
VALUES = [0.0, 1.0, -1.0, 1e308, -1e308, float("inf"), float("nan"), None, 5e-324]
NAMES = ["c", "c\n", "\x1b", "é'\"", " ", "𝄞"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_a_plan_accepts_can_be_released(data, tmp_path_factory):
    pick = lambda choices: data.draw(st.sampled_from(choices))  # noqa: E731
    lower, upper = sorted((pick(LIMITS), pick(LIMITS)), key=Fraction)
    unit = pick(["row", "who"])
    count = pick([0, 1, 20])
    table = pa.table(
        {
            "who": pa.array([str(at % 3) for at in range(count)], pa.string()),
            "g": pa.array([pick(["a", "b\n", None]) for _ in range(count)], pa.string()),
            "x": pa.array([pick(VALUES) for _ in range(count)], pa.float64()),
            "y": pa.array([pick([0, 2**63 - 1, -(2**63), None]) for _ in range(count)], pa.int64()),
        }
    )
    columns = {
        "x": {"bounds": [lower, upper]},
        "y": {"bounds": [0, pick([1, 2**53])]},
        "g": {"keys": ["a", "b\n"]},
    }
    if pick([True, False]):
        columns["x"]["missing"] = lower
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    wanted = ", ".join(f'{pick(ASKED)} AS "{name.replace(chr(34), chr(34) * 2)}"' for name in names)
    grouped = pick([True, False])
    sql = f"SELECT {'g, ' * grouped}{wanted} FROM data{' GROUP BY g' * grouped}"  # noqa: S608
    terms = {"max_rows": pick([1, 10**9, 10**18])} if unit == "who" else {}
    try:
        policy = Policy(
            source=table,
            epsilon=10**6,
            unit=unit,
            neighbors=pick(["change-one", "add-remove"]),
            columns=columns,
            **terms,
        )
        study = Study(policy, ledger=Paper())
        plan = study.sql(
            sql,
            epsilon=pick(EPSILONS),
            confidence=pick(CONFIDENCES),
            simultaneous=pick([True, False]),
        )
        assert repr(plan)
    except DiscreetError:
        return
    answer = plan.release()
    json.dumps(answer.full_record, allow_nan=False)
    assert repr(answer)
    assert answer._repr_html_()
    assert (
        len(answer.to_arrow()) == len(answer.to_pandas()) == len(answer.to_polars()) == len(answer)
    )
    folder = tmp_path_factory.mktemp("saved")
    for form in ("csv", "json", "parquet"):
        assert answer.save(folder / f"{form}.{form}").exists()


@pytest.mark.parametrize(
    "confidence", ["0.99999999999999999", "0.9999999999", "1e-7", "1", "0", "nan", 1, 2.0]
)
def test_a_confidence_of_nothing_is_refused_wherever_it_is_given(confidence, study):
    release = discreet.mean([1.0, 2.0], bounds=(0, 3), epsilon=1)
    acts = [
        lambda: study.sql(SQL, epsilon=1, confidence=confidence),
        lambda: study.sql(SQL, within=10, size=50, confidence=confidence),
        lambda: discreet.median([1.0], bounds=(0, 3), epsilon=1, confidence=confidence),
        lambda: discreet.quantile([1.0], "0.9", bounds=(0, 3), epsilon=1, confidence=confidence),
        lambda: release.interval(confidence),
        lambda: release.accuracy(confidence),
        lambda: discreet.summary([1.0, 2.0], bounds=(0, 3), epsilon=1).interval(confidence),
        lambda: discreet.randomized_response([1, 0], epsilon=1).interval(confidence),
        lambda: discreet.accuracy.people_needed(
            error="0.1", epsilon=1, statistic="proportion", confidence=confidence
        ),
    ]
    for act in acts:
        with pytest.raises(InvalidParameter, match="confidence"):
            act()
    assert study.spent == 0


def test_many_intervals_that_hold_together_are_refused_or_released():
    keys = list(range(100_000))
    table = pa.table({"g": pa.array([0, 1], pa.int64()), "x": [1.0, 2.0]})
    policy = Policy(
        source=table,
        epsilon=10,
        columns={"g": {"keys": "0..99999"}, "x": {"bounds": [0, 9]}},
        version="1",
    )
    study = Study(policy, ledger=Paper(10))
    sql = "SELECT g, count(*) FROM data GROUP BY g"
    with pytest.raises(InvalidParameter, match="too near to 1 for 100,000 intervals"):
        study.sql(sql, epsilon=1, confidence="0.999999999", simultaneous=True)
    answer = study.sql(sql, epsilon=1, confidence="0.999999", simultaneous=True).release()
    assert len(answer) == len(keys)
