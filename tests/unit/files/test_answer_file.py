"""`plan.release(to=…)`: the same numbers as an answer in memory, in a file that is made once."""

import hashlib
import json
from fractions import Fraction

import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import InvalidParameter, Policy, QueryRefused, Study
from discreet.draw import vector
from discreet.files import answer_file

AREAS, LEVELS = 90, 3
ROWS = pa.table(
    {
        "area": [f"area {number % (AREAS - 1)}" for number in range(4_000)],
        "level": [number % 4 for number in range(4_000)],
        "age": [number % 130 for number in range(4_000)],
        "pay": [(number % 97) / 8 for number in range(4_000)],
    }
)
POLICY = {
    "source": ROWS,
    "version": "v1",
    "columns": {
        "area": {"keys": [f"area {number}" for number in range(AREAS)]},
        "level": {"keys": [0, 1], "other": "more"},
        "age": {"bounds": (0, 120)},
        "pay": {"bounds": (-3, 11)},
    },
}
QUESTION = (
    "SELECT level, area, count(*) AS people, sum(age) AS years, sum(pay) AS paid, avg(age) AS mean,"
    " std(age) AS std FROM data GROUP BY area, level"
)
PLAIN = "SELECT area, count(*) AS people FROM data GROUP BY area"


@pytest.fixture
def study(tmp_path):
    with Study(Policy(epsilon=100, **POLICY), ledger=tmp_path / "study.ledger") as opened:
        yield opened


@pytest.mark.parametrize(
    ("order", "cells"), [("area, level", 70), ("level, area", 70), ("level, area", 89)]
)
def test_without_noise_the_file_is_the_answer_in_memory(study, tmp_path, monkeypatch, order, cells):
    question = QUESTION.replace("area, level", order)
    monkeypatch.setattr(answer_file, "PART", cells)
    monkeypatch.setattr(answer_file, "_PARTS", 2)
    monkeypatch.setattr(vector, "fill", lambda out, _scale: out.fill(0))
    plain = study.sql(question, epsilon=1).release()
    # another confidence makes it another question, and hardly moves an interval
    kept = study.sql(question, epsilon=1, confidence="0.9500000001").release(
        to=tmp_path / "cells.parquet"
    )
    table, wanted = kept.to_arrow().to_pydict(), plain.to_dict()
    assert list(table) == list(wanted)
    assert table.pop("area") == wanted.pop("area")
    # keys of two kinds are texts in a file
    assert table.pop("level") == list(map(str, wanted.pop("level")))
    for name, column in wanted.items():
        assert table[name] == pytest.approx(column, rel=1e-6, abs=1e-6), name
    assert sum(table["people"]) == ROWS.num_rows
    assert len(kept) == AREAS * LEVELS
    assert parquet.ParquetFile(kept.path).num_row_groups == 2


def test_every_cell_has_a_draw_of_its_own(study, tmp_path, monkeypatch):
    """A scale of 10⁶: 270 draws that are all different but for one chance in 50."""
    monkeypatch.setattr(answer_file, "PART", 100)
    table = (
        study.sql(QUESTION, epsilon="0.000005").release(to=tmp_path / "cells.parquet").to_arrow()
    )
    assert len(set(table["people"].to_pylist())) > AREAS * LEVELS - 10


@pytest.mark.parametrize("start", [0, 5, 2**32 - 10, 2**32 + 3, 2**34])
@pytest.mark.parametrize("stride", [1, 3, 2**31, 2**33])
def test_keys_of_cells_beyond_32_bits_are_right(start, stride):
    labels = pa.array(list("abcdefg"))
    keys = answer_file._key_array(labels, stride, start, start + 20).to_pylist()
    assert keys == ["abcdefg"[cell // stride % 7] for cell in range(start, start + 20)]


def test_the_file_has_plain_types_whatever_the_data(study, tmp_path):
    table = study.sql(QUESTION, epsilon=1).release(to=tmp_path / "cells.parquet").to_arrow()
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["area"] == kinds["level"] == "string"
    assert {kinds[f"people{end}"] for end in ("", "_low", "_high")} == {"int64"}
    assert {kinds[f"years{end}"] for end in ("", "_low", "_high")} == {"double"}
    assert not any(
        table.schema.field(name).nullable for name in kinds if name not in ("area", "level")
    )


def test_the_ledger_keeps_the_hash_and_the_record_without_numbers(study, tmp_path):
    answer = study.sql(PLAIN, epsilon=1).release(to=tmp_path / "cells.parquet", request_id="one")
    kept = json.loads(study.ledger.answer(study="study", request_id="one"))
    assert kept == answer.record
    assert kept["sha256"] == hashlib.sha256(answer.path.read_bytes()).hexdigest()
    assert "numbers" not in kept
    assert kept["statistics"][0]["asked"] == "count(*)"
    told = {**kept, "entry": "one", "card": answer.card().content}
    assert json.loads((tmp_path / "cells.release.json").read_text()) == told
    assert (answer.epsilon, answer.remaining) == (1, 99)
    assert repr(answer) == "90 rows in cells.parquet · intervals at 95 % · ε 1 spent, 99 left"


def test_asked_again_it_is_the_same_file_and_free(study, tmp_path):
    plan = study.sql(PLAIN, epsilon=1)
    first = plan.release(to=tmp_path / "cells.parquet")
    before = first.path.read_bytes()
    for place in ("cells.parquet", "other.parquet"):
        assert plan.release(to=tmp_path / place).path == first.path
    assert first.path.read_bytes() == before
    assert not list(tmp_path.glob("other.*"))
    assert study.spent == 1
    first.path.unlink()
    with pytest.raises(QueryRefused, match="the file is gone, and a release is made once"):
        plan.release(to=tmp_path / "cells.parquet")
    assert study.spent == 1


def test_an_answer_is_either_a_file_or_in_the_ledger(study, tmp_path):
    plan, other = study.sql(PLAIN, epsilon=1), study.sql(PLAIN, epsilon=2)
    plan.release(to=tmp_path / "cells.parquet")
    with pytest.raises(QueryRefused, match=r"cells\.parquet: read it there"):
        plan.release()
    other.release()
    with pytest.raises(QueryRefused, match="not as a file"):
        other.release(to=tmp_path / "other.parquet")
    assert study.spent == 3


REFUSED = {
    "no groups": "SELECT count(*) AS n, sum(age) AS years FROM data",
    "HAVING": PLAIN + " HAVING count(*) > 5",
    "ORDER BY": PLAIN + " ORDER BY people",
    "LIMIT": PLAIN + " LIMIT 3",
    "arithmetic": "SELECT area, sum(age) / count(*) AS mean FROM data GROUP BY area",
    "quantiles": "SELECT area, median(age) AS m FROM data GROUP BY area",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_written_part_by_part_is_refused_before_the_spend(study, tmp_path, why):
    with pytest.raises(QueryRefused):
        study.sql(REFUSED[why], epsilon=1).release(to=tmp_path / "cells.parquet")
    assert study.spent == 0


@pytest.mark.parametrize("name", ["cells.csv", "cells", "taken.parquet", "nowhere/cells.parquet"])
def test_a_target_that_cannot_be_is_refused_before_the_spend(study, tmp_path, name):
    (tmp_path / "taken.parquet").write_text("mine")
    with pytest.raises(InvalidParameter):
        study.sql(PLAIN, epsilon=1).release(to=tmp_path / name)
    assert study.spent == Fraction(0)
    assert (tmp_path / "taken.parquet").read_text() == "mine"
