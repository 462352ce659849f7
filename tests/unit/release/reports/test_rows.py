"""Synthetic rows: those that noise alone would make too many of are refused before the spend; the
rest is written.
"""

import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import Policy, Study
from discreet.errors import InvalidParameter
from discreet.release.reports import rows as rows_module

TABLES = {"sexes": "SELECT sex, count(*) AS n FROM data GROUP BY sex"}
CELLS = 3
"""Of which one is for rows that have none of the keys."""


@pytest.fixture
def study(tmp_path):
    policy = Policy(
        source=pa.table({"sex": ["f", "m"] * 50}),
        columns={"sex": {"keys": ["f", "m"]}},
        epsilon=10,
        neighbors="add-remove",
        version="1",
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as opened:
        yield opened


def test_rows_of_a_tiny_epsilon_are_refused_before_the_spend(study):
    for epsilon in ("1e-9", "0.00000002"):
        with pytest.raises(
            InvalidParameter, match=r"the noise alone creates about .* rows, .* leave rows out"
        ):
            study.report(TABLES, epsilon=epsilon, rows="rows.parquet")
    # 3 cells, 10⁸ rows
    assert study.report(TABLES, epsilon="0.00000003", rows="rows.parquet").epsilon > 0
    assert study.report(TABLES, epsilon="1e-9", integers=True).release()["sexes"].columns == [
        "sex",
        "n",
    ]
    assert study.spent == study.report(TABLES, epsilon="1e-9").epsilon


def test_whole_counts_that_floats_cannot_follow_are_refused_before_the_spend(tmp_path):
    policy = Policy(
        source=pa.table({"who": ["a"], "sex": ["f"]}),
        columns={"sex": {"keys": ["f", "m"]}},
        epsilon=1,
        neighbors="add-remove",
        unit="who",
        max_rows=10**6,
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as opened:
        with pytest.raises(InvalidParameter, match="leave integers out"):
            opened.report(TABLES, epsilon="0.000000002", integers=True)
        report = opened.report(TABLES, epsilon="0.000000003", integers=True).release()
        assert all(isinstance(count, int) and count >= 0 for count in report["sexes"]["n"])


def test_rows_just_within_the_limit_are_written_in_parts(study, tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "MOST_ROWS", 30_000)
    monkeypatch.setattr(rows_module, "_PART", 1_000)
    with pytest.raises(InvalidParameter, match="the noise alone"):
        study.report(TABLES, epsilon="0.0000999", rows="rows.parquet")
    report = study.report(TABLES, epsilon="0.0001", rows="rows.parquet").release()
    report.save(tmp_path / "report")
    file = parquet.ParquetFile(tmp_path / "report" / "rows.parquet")
    cells, _ = report.whole_cells
    assert [file.metadata.num_rows, file.num_row_groups] == [
        int(cells.sum()),
        -(-int(cells.sum()) // 1_000),
    ]
    written = file.read().column("sex").to_pylist()
    assert [written.count(sex) for sex in ("f", "m", None)] == cells.tolist()
    # by chance the noise makes more than a table may have
    monkeypatch.setattr(rows_module, "MOST_ROWS", 10**9)
    assert file.read().equals(report.rows().replace_schema_metadata(file.schema_arrow.metadata))
    assert b"These rows are synthetic" in file.schema_arrow.metadata[b"discreet"]


def test_a_table_of_more_rows_than_fit_is_refused_and_names_the_way_out(study, monkeypatch):
    report = study.report(TABLES, epsilon=1).release()
    monkeypatch.setattr(rows_module, "MOST_ROWS", 10)
    with pytest.raises(InvalidParameter, match="name a file with rows="):
        report.rows()


@pytest.mark.parametrize(("max_rows", "keys"), [(1, 2), (10**6, 2), (10**6, 20_000)])
def test_rows_are_refused_after_the_spend_only_where_the_plan_refuses_them_before(
    tmp_path, max_rows, keys
):
    """A file was proposed instead, which is refused, too, and noise beyond int64 was not noticed."""
    policy = Policy(
        source=pa.table({"who": ["a"], "sex": ["1"]}),
        columns={"sex": {"keys": [str(key) for key in range(keys)]}},
        epsilon=1,
        neighbors="add-remove",
        unit="who",
        max_rows=max_rows,
    )
    refused = pytest.raises(
        InvalidParameter, match=r"the noise alone creates about .* rows, .* leave rows out"
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as opened:
        with refused:
            opened.report(TABLES, epsilon="1e-9", rows="rows.parquet")
        report = opened.report(TABLES, epsilon="1e-9").release()
        with refused:
            report.rows()


def test_rows_of_a_report_without_groups_are_refused(study):
    tables = {"all": "SELECT count(*) AS n FROM data"}
    refused = pytest.raises(InvalidParameter, match="rows needs group columns")
    with refused:
        study.report(tables, epsilon=1, rows="rows.parquet")
    report = study.report(tables, epsilon=1).release()
    with refused:
        report.rows()
