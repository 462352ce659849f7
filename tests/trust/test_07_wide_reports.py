"""TRUST 7: a report of many columns with many keys fails for no row, wherever the row lies among all combinations."""

import pyarrow as pa
import pytest

from discreet import Policy, Study

COLUMNS, KEYS = 24, 60
"""61²⁴ combinations: more than 128 bits can number."""


@pytest.mark.parametrize(
    "limits", [{"max_rows": 1}, {"max_rows": 2, "max_groups": 2}, {"max_rows": 3, "max_groups": 1}]
)
def test_a_row_with_the_last_keys_is_answered_like_any_other(tmp_path, limits):
    columns = {f"c{at}": {"keys": [str(key) for key in range(KEYS)]} for at in range(COLUMNS)}
    tables = {f"t{at}": f"SELECT c{at}, count(*) AS n FROM data GROUP BY c{at}" for at in range(COLUMNS)}  # noqa: S608
    counted = {}
    for key in ("0", "59", "none of them"):
        rows = {name: ["0"] * 4 + [key, key, "1", "2"] for name in columns}
        data = pa.table({**rows, "who": ["a", "b", "c", "d", "e", "e", "e", "e"]})
        told = {"epsilon": 10_000, "version": "1", "neighbors": "add-remove", "unit": "who", **limits}
        with Study(Policy(source=data, columns=columns, **told), ledger=tmp_path / f"{key}.ledger") as study:
            report = study.report(tables, epsilon=10_000).release()
            counted[key] = [round(sum(answer["n"])) for answer in report.tables.values()]
    most = limits["max_rows"]
    assert all(5 <= n <= 4 + most for n in counted["0"] + counted["59"])
    assert all(4 <= n <= 4 + most for n in counted["none of them"])
