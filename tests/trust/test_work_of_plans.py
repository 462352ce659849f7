"""A free question costs a bounded amount of work: it is computed before it is done, and too much is
refused.

The shapes are those of `bench.shapes`, of which `python -m bench plans` measures the processor
time. No clock is looked at here: while a shape is planned its operations are counted, and there are
never more than were computed.
"""

import importlib
import inspect
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from discreet import InvalidParameter, QueryRefused
from discreet.release import work
from discreet.release.reports import allocation, fit
from discreet.release.reports import work as of_reports
from discreet.release.statistics import families, grouped, moments, ranks, spread
from serving import BY_COUNTY, folder_in_memory, served

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = (
    *(
        "100 means, add-remove",
        "100 means by county, change-one",
        "3,143 groups of 100 numbers",
        "100 ratios",
    ),
    *(
        "99 sums of a CASE, simultaneous",
        "99 sums of a CASE, within",
        "50 sums, 50 counts, 50 means by county",
    ),
    *(
        "21 tables of 1 and 2 of 6 columns, within",
        "21 tables of means, within",
        "21 tables of 21 means",
    ),
    *(
        "45 tables of 2 of 10 columns, within",
        "78 tables of 1 and 2 of 12 columns",
        "county, state and hundred",
    ),
    *(
        "60 means of whole numbers, change-one",
        "99 minima and maxima",
        "100 counts of conditions",
        "quantiles of 99 ranks",
    ),
)
TOO_MUCH = (
    "400 sums of a CASE",
    "210 tables of 1 and 2 of 20 columns",
    "10 tables of 10 of 12 columns",
    "tables × numbers",
)


@pytest.fixture(scope="module")
def shapes():
    """`bench.shapes`, which is no part of the package."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("bench.shapes")
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def studies(shapes):
    with folder_in_memory() as folder:
        opened = shapes.studies(folder)
        yield opened
        for study in opened.values():
            study.close()


def names():
    """The names of all shapes, which must be known before a fixture is."""
    sys.path.insert(0, str(ROOT))
    try:
        return [shape.name for shape in importlib.import_module("bench.shapes").SHAPES]
    finally:
        sys.path.remove(str(ROOT))


def forget():
    """Forget what is kept between plans, so that each does all of its work."""
    for name, module in list(sys.modules.items()):
        if name.startswith("discreet"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@contextmanager
def counted(monkeypatch):
    """The operations that are done within, at the prices of `release.work`."""
    done, of_report = Counter(), []

    def before(owner, name, count):
        real = getattr(owner, name)

        def counting(*args, **more):
            count(*args, **more)
            return real(*args, **more)

        patch.setattr(owner, name, counting)

    def lines(design, *_, **__):
        done["numbers"] += work.NUMBER_AT * len(design.names)

    def radii(sizes, _confidence, _times, smallest, _start=None):
        rows, kinds = sizes.reshape(-1, sizes.shape[-1]).shape
        of_report.append(smallest == spread._LEAST_OF_MANY)
        done["radii"] += (
            work.RADIUS + kinds * work.WEIGHT + work.ROW
            if of_report[-1]
            else work.radius(rows, kinds)
        )

    def closed(sizes, _confidence):
        rows, kinds = sizes.reshape(-1, sizes.shape[-1]).shape
        done["radii"] += work.closed_radius(rows, min(kinds, 1))  # equal weights are one kind

    def integrals(sizes, confidence, times, smallest, start):
        """Integrals of a report, by step of Newton's method; their price is computed with other
        nodes than these.
        """
        own = smallest == spread._LEAST_OF_MANY

        def nodes(squares, reach, times):
            tilt, width, count = real_nodes(squares, reach, times)
            furthest = float((tilt**2 + (count * width) ** 2).max())
            large = int((squares.max(axis=0) * furthest > spread._SMALL).sum())
            done["nodes"] += own * len(squares) * count * (work.NODE + work.NODE_OF_WEIGHT * large)
            return tilt, width, count

        with monkeypatch.context() as inner:
            inner.setattr(spread, "_nodes", nodes)
            return real_integrals(sizes, confidence, times, smallest, start)

    def joint(design, _terms):
        done["coefficients"] += work.COEFFICIENT * len(design.units(_terms)) * len(design.names)

    def downhill(spreads, information, shares, steps, _largest):
        done["descents"] += (
            of_reports._DESCENT * len(shares) * steps * (information.size + spreads.size)
        )

    def law(combined, _question):
        done["sets"] += of_reports.SET * len(combined.measured) + of_reports.AXIS * len(
            combined.axes
        )

    with monkeypatch.context() as patch:
        for design in (
            families.JointDesign,
            moments.MomentDesign,
            ranks.QuantileDesign,
            ranks.ExtremeDesign,
        ):
            before(design, "lines", lines)
        before(spread, "_tilted_radius", radii)
        before(spread, "_closed_radius", closed)
        before(families.JointDesign, "_partitions", joint)
        before(allocation, "_downhill", downhill)
        before(fit.Combined, "_law", law)
        # not those that tests keep
        real_nodes, real_integrals = spread._nodes, inspect.unwrap(spread._some_radii)
        patch.setattr(spread, "_some_radii", integrals)
        begun = grouped._mean_error.cache_info().misses
        yield done
        done["errors"] = work.MEAN_ERROR * (grouped._mean_error.cache_info().misses - begun)


def plan(shapes, studies, shape, monkeypatch):
    """What a shape's plan did, what it was computed to do, and why it was refused."""
    forget()
    refusal, steps = "", work.Steps()
    with counted(monkeypatch) as done:
        try:
            planned = shapes.planned(studies[shape.study], shape)
        except (InvalidParameter, QueryRefused) as error:
            refusal = str(error)
    if not refusal:
        steps = shapes.steps_of(planned, shape)
    return done, steps, refusal


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_a_shape_is_refused_or_does_no_more_than_was_computed(name, shapes, studies, monkeypatch):
    [shape] = [shape for shape in shapes.SHAPES if shape.name == name]
    done, steps, refusal = plan(shapes, studies, shape, monkeypatch)
    assert not (refusal and name in ORDINARY), refusal
    if refusal:
        assert sum(done.values()) <= work.MOST, "a refusal takes no longer than a plan"
        return
    assert steps.total() <= work.MOST
    # a radius of single draws has a price by rows
    done["integrals"] = done.pop("radii", 0) + done.pop("nodes", 0)
    steps["integrals"] = steps["radii"] + steps["nodes"]
    for operation, count in done.items():
        assert count <= steps[operation], operation


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_too_much_is_refused_by_name_with_what_to_do(name, shapes, studies):
    [shape] = [shape for shape in shapes.SHAPES if shape.name == name]
    before = studies[shape.study].spent
    with pytest.raises(
        QueryRefused,
        match=rf"a plan may take {work.MOST:,} steps of work, but this .* needs .*: .* two",
    ):
        shapes.planned(studies[shape.study], shape)
    assert studies[shape.study].spent == before


def test_there_are_at_least_forty_shapes(shapes):
    assert len({shape.name for shape in shapes.SHAPES}) == len(shapes.SHAPES) >= 40


@pytest.mark.slow
def test_eight_of_the_largest_plans_at_once_do_no_more_than_eight_times_the_limit(
    shapes, studies, monkeypatch
):
    largest = [shape for shape in shapes.SHAPES if shape.name in (*ORDINARY[:6], *ORDINARY[7:9])]
    forget()
    with counted(monkeypatch) as done, ThreadPoolExecutor(8) as threads:
        plans = list(
            threads.map(lambda shape: shapes.planned(studies[shape.study], shape), largest)
        )
    computed = sum(shapes.steps_of(*pair).total() for pair in zip(plans, largest, strict=True))
    assert len(plans) == 8
    assert sum(done.values()) <= computed <= 8 * work.MOST


QUESTION = {"study": "people", "sql": BY_COUNTY}
REPORT = {"study": "people", "tables": {"all": BY_COUNTY, "total": "SELECT count(*) FROM people"}}


@pytest.mark.parametrize("who", ["ann", "cleo"])
@pytest.mark.parametrize("terms", [{"epsilon": "0.1"}, {"within": 50, "size": 100}])
@pytest.mark.parametrize(("path", "asked"), [("plan", QUESTION), ("report/plan", REPORT)])
def test_http_has_the_same_limit_for_plans_and_releases_of_everyone(
    path, asked, terms, who, monkeypatch
):
    with folder_in_memory() as folder, served(folder) as site:
        client, release = site.client(who), f"/{path}".removesuffix("/plan") or "/release"
        assert client.post(f"/{path}", json={**asked, **terms}).status_code == 200
        monkeypatch.setattr(work, "MOST", 1_000)
        for target, more in ((f"/{path}", {}), (release, {"request_id": "r"})):
            refused = client.post(target, json={**asked, **terms, **more})
            assert refused.status_code == 422, refused.text
            assert "steps of work" in refused.text
        assert site.study.spent == 0


def test_columns_and_texts_without_number_are_refused(studies):
    study = studies["wide"]
    many = [f"measurement_{number:05}" for number in range(work.MOST_COLUMNS + 1)]
    with pytest.raises(QueryRefused, match="at most 1,000 columns, but this has 1,001"):
        study.profile(many, epsilon=1)
    with pytest.raises(QueryRefused, match="at most 1,000 columns, but this has 1,001"):
        study.discover(*many, epsilon=1)
    text = "SELECT count(*) FROM data" + " " * 10_000
    with pytest.raises(QueryRefused, match="at most 100,000 characters"):
        study.report({f"t{number}": text for number in range(11)}, epsilon=1)
    assert study.spent == 0
