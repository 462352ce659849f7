"""TRUST 37: a line of text that cannot be read is left out, so that the number of rows of such a
file is private.
"""

import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import InvalidParameter, Policy, Study
from discreet.verify import certify
from studies import Paper, replayed, select

COLUMNS = {"pay": {"bounds": (1000, 1001), "missing": 1000, "type": "number"}}
GOOD = {".csv": b"eve,1000", ".jsonl": b'{"who": "eve", "pay": 1000}'}
BAD = {
    ".csv": [b"eve,1000,x", b"eve", b"", b"\xff,1000", b"eve,\xff", b"eve," + b"1" * (2**21 + 1)],
    ".jsonl": [b"[1000]", b"null", b"", b'{"pay": 1000', b'{"pay": "\xff"}'],
}
QUESTIONS = ["count(*)", "sum(pay)", "avg(pay)", "variance(pay)", "count(*), avg(pay), stddev(pay)"]


def study(folder, suffix, last, source="{}", columns=COLUMNS, **terms):
    """A study of twenty lines, the last of which is given."""
    folder.mkdir(exist_ok=True)
    file = folder / f"people{suffix}"
    lines = [GOOD[suffix].replace(b"eve", b"p%d" % at) for at in range(19)]
    file.write_bytes(
        b"\n".join([*([b"who,pay"] if suffix == ".csv" else []), *lines, last]) + b"\n"
    )
    terms = {"table": "data", "version": "1", "epsilon": 10**6, "columns": columns, **terms}
    return Study(Policy(source=source.format(file), **terms), ledger=Paper())


def check(one, two, asked):
    """No share of ε is exceeded, nothing differs without noise, and what is released is paid for."""
    plan = one.sql(select(asked), epsilon="0.1")
    first, second = replayed(plan, one), replayed(plan, two)
    for name, share, lost in first.losses(second):
        assert lost <= share, (name, lost)
    assert first.charge == second.charge == plan.epsilon
    assert plan.canonical == two.sql(select(asked), epsilon="0.1").canonical


@pytest.mark.parametrize("suffix", GOOD)
def test_a_line_that_cannot_be_read_moves_no_answer_beyond_its_noise(tmp_path, suffix):
    one = study(tmp_path / "one", suffix, GOOD[suffix])
    for at, line in enumerate(BAD[suffix]):
        two = study(tmp_path / str(at), suffix, line)
        for asked in QUESTIONS:
            check(one, two, asked)


@pytest.mark.parametrize("suffix", GOOD)
def test_a_unit_whose_only_line_cannot_be_read_moves_no_answer_beyond_its_noise(tmp_path, suffix):
    terms = {"unit": "who", "max_rows": 1}
    one = study(tmp_path / "one", suffix, GOOD[suffix], **terms)
    two = study(tmp_path / "two", suffix, BAD[suffix][0], **terms)
    for asked in ("count(DISTINCT who)", "count(*)", "avg(pay)"):
        check(one, two, asked)


def test_the_same_holds_for_a_select_over_such_a_file(tmp_path):
    given = {
        "source": "SELECT who, TRY_CAST(pay AS DOUBLE) AS pay FROM '{}'",
        "columns": {"pay": {"bounds": (1000, 1001), "missing": 1000}},
    }
    one = study(tmp_path / "one", ".csv", GOOD[".csv"], **given)
    two = study(tmp_path / "two", ".csv", BAD[".csv"][0], **given)
    for asked in QUESTIONS:
        check(one, two, asked)


def test_within_does_not_use_the_number_of_lines_and_the_plan_says_that_it_is_private(tmp_path):
    here = study(tmp_path, ".csv", GOOD[".csv"])
    with pytest.raises(InvalidParameter, match="size="):
        here.sql("SELECT avg(pay) FROM data", within="0.1")
    assert "The number of rows is private" in repr(
        here.sql("SELECT count(*) FROM data", epsilon="0.1")
    )
    assert "The number of rows is private" not in repr(
        here.sql("SELECT count(*) FROM data WHERE pay > 1", epsilon="0.1")
    )


def test_a_certificate_knows_it(tmp_path):
    here = study(tmp_path, ".csv", GOOD[".csv"])
    assert certify(here.sql("SELECT count(*), sum(pay) FROM data", epsilon="0.1")).epsilon > 0


def test_control_in_a_file_of_parquet_every_row_is_one_and_their_number_is_public(tmp_path):
    for source, size in (("{}", None), ("SELECT pay FROM '{}'", "public")):
        file = tmp_path / "people.parquet"
        parquet.write_table(pa.table({"pay": [1000.0] * 19 + [None]}), file)
        columns = {"pay": {"bounds": (1000, 1001), "missing": 1000}}
        told = {"table": "data", "version": "1", "epsilon": 10**6, "columns": columns, "size": size}
        policy = Policy(source=source.format(file), **told)
        plan = Study(policy, ledger=Paper()).sql("SELECT count(*) AS n FROM data", epsilon="0.1")
        assert (plan.cost, plan.release()["n"], "private" in repr(plan)) == (0, [20], False)


def test_control_the_records_of_studies_compare_numbers_that_are_opened():
    def records(count):
        table = pa.table({"pay": [1000.0] * count})
        policy = Policy(
            source=table,
            table="data",
            version="1",
            epsilon=10**6,
            columns={"pay": {"bounds": (0, 1)}},
        )
        one = Study(policy, ledger=Paper())
        return replayed(one.sql("SELECT count(*) FROM data", epsilon="0.1"), one)

    with pytest.raises(AssertionError):
        records(20).losses(records(19))
