"""TRUST 7: a report of many columns with many keys fails for no row, wherever the row lies among
all combinations.
"""

import pyarrow as pa
import pytest

from discreet import Policy, Study

COLUMNS, KEYS = 24, 60
"""61²⁴ combinations: more than 128 bits can number."""


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ({"max_rows": 1}, "0"),
        ({"max_rows": 1}, "59"),
        ({"max_rows": 2, "max_groups": 2}, "59"),
        ({"max_rows": 2, "max_groups": 2}, "none of them"),
        ({"max_rows": 3, "max_groups": 1}, "59"),
        ({"max_rows": 3, "max_groups": 1}, "none of them"),
    ],
    ids=str,
)
def test_a_row_with_the_last_keys_is_answered_like_any_other(tmp_path, limits, key):
    """The largest number of a combination meets every way in which limits are kept."""
    columns = {f"c{at}": {"keys": [str(key) for key in range(KEYS)]} for at in range(COLUMNS)}
    tables = {
        f"t{at}": f"SELECT c{at}, count(*) AS n FROM data GROUP BY c{at}"  # noqa: S608
        for at in range(COLUMNS)
    }
    rows = {name: ["0"] * 4 + [key, key, "1", "2"] for name in columns}
    data = pa.table({**rows, "who": ["a", "b", "c", "d", "e", "e", "e", "e"]})
    told = {"epsilon": 10_000, "version": "1", "neighbors": "add-remove", "unit": "who", **limits}
    with Study(
        Policy(source=data, columns=columns, **told), ledger=tmp_path / "study.ledger"
    ) as study:
        report = study.report(tables, epsilon=10_000).release()
        counted = [round(sum(answer["n"])) for answer in report.tables.values()]
    least = 4 if key == "none of them" else 5
    assert all(least <= n <= 4 + limits["max_rows"] for n in counted)
