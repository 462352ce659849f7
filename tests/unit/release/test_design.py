"""Many groups are estimated in parts, on several threads: the same numbers, in the same order, each
with its draw.
"""

import pyarrow as pa
import pytest

from discreet import Policy, Study
from discreet.draw import vector
from discreet.draw.noted import noting
from discreet.release import design, plan

PLACES = 300
ROWS = pa.table(
    {
        "place": [number % (PLACES - 1) for number in range(4_000)],
        "age": [n % 130 for n in range(4_000)],
    }
)
QUESTION = (
    "SELECT place, count(*) AS n, sum(age) AS years, avg(age) AS mean FROM data GROUP BY place"
)


@pytest.fixture
def study(tmp_path):
    columns = {"place": {"keys": list(range(PLACES))}, "age": {"bounds": (0, 120)}}
    policy = Policy(source=ROWS, epsilon=10**6, version="1", columns=columns)
    with Study(policy, ledger=tmp_path / "study.ledger") as opened:
        yield opened


def in_parts(monkeypatch):
    for module in (design, plan):
        monkeypatch.setattr(module, "PART", 70)


def test_without_noise_parts_are_the_whole(study, monkeypatch):
    monkeypatch.setattr(vector, "fill", lambda out, _scale: out.fill(0))
    whole = study.sql(QUESTION, epsilon=100_000).release()
    in_parts(monkeypatch)
    # another confidence makes it another question, and hardly moves an interval
    parts = study.sql(QUESTION, epsilon=100_000, confidence="0.9500000001").release()
    assert parts["place"] == list(range(PLACES))
    for name in ("n", "years", "mean"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-6), name
        for mine, theirs in zip(parts.interval(name), whole.interval(name), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-6), name


def test_the_draws_of_all_parts_are_noted(study, monkeypatch):
    in_parts(monkeypatch)
    planned = study.sql("SELECT place, count(*) FROM data GROUP BY place", epsilon="0.00001")
    with noting() as notes:
        planned.release()
    assert sorted(note.count for note in notes) == [20, 70, 70, 70, 70]


def test_every_group_has_a_draw_of_its_own(study, monkeypatch):
    """A scale of 10⁵: 300 draws of which more than 10 are equal to others in one of many thousand
    cases.
    """
    in_parts(monkeypatch)
    counts = study.sql(
        "SELECT place, count(*) AS n FROM data GROUP BY place", epsilon="0.00001"
    ).release()["n"]
    assert len(set(counts)) > PLACES - 10


def test_choices_are_made_in_all_groups_at_once(study, monkeypatch):
    in_parts(monkeypatch)
    answer = study.sql(
        "SELECT place, median(age) AS mid FROM data GROUP BY place", epsilon=100_000
    ).release()
    assert len(answer["mid"]) == PLACES
