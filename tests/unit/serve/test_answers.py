import json
from datetime import date

import pyarrow as pa
import pytest

import discreet
from discreet.errors import EngineFailed
from discreet.serve.answers import answer_body, answer_of, view_json

TABLE = pa.table(
    {
        "place": ["north", "south"] * 50,
        "age": [float(index) for index in range(100)],
        "level": [1, 2] * 50,
        "day": pa.array(["2020-01-01", "2021-06-01"] * 50).cast(pa.date32()),
    }
)
COLUMNS = {
    "place": {"keys": ["north", "south"], "other": "elsewhere"},
    "age": {"bounds": (0, 120), "bins": [0, 9, 18, 120]},
    "level": {"keys": [1, 2]},
    "day": {"bounds": (date(2020, 1, 1), date(2022, 1, 1))},
}
QUESTIONS = [
    "SELECT count(*) AS n FROM t",
    (
        "SELECT place, count(*) AS n, avg(age) AS age FROM t GROUP BY place ORDER BY n DESC, place"
        " LIMIT 2"
    ),
    (
        "SELECT place, sum(age) / count(*) AS mean, 2 * count(*) - 1 AS twice FROM t GROUP BY place"
        " HAVING count(*) > 3"
    ),
    "SELECT age, count(*) AS n FROM t GROUP BY age ORDER BY age DESC",
    (
        "SELECT level, place, count(*) n FROM t GROUP BY level, place HAVING count(*) > 0 AND"
        " count(*) < 9 OR sum(age) > 1"
    ),
    "SELECT median(age), quantile(age, 0.9), min(age), max(age), stddev(age) FROM t",
    (
        "SELECT extract(year FROM day) AS year, count(*) AS n FROM t GROUP BY extract(year FROM"
        " day) ORDER BY year"
    ),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    policy = discreet.Policy(
        source=TABLE, table="t", columns=COLUMNS, epsilon=1000, neighbors="add-remove", version="1"
    )
    with discreet.Study(policy, ledger=tmp_path_factory.mktemp("answers") / "t.ledger") as study:
        yield study


@pytest.mark.parametrize("sql", QUESTIONS)
def test_an_answer_is_the_same_on_the_other_side(study, sql, tmp_path):
    plan = study.sql(sql, epsilon=1)
    local = plan.release()
    remote = answer_of(json.loads(answer_body(local, "t", view_json(plan.query))))
    assert remote == local
    assert remote.content == local.content
    assert repr(remote) == repr(local)
    assert remote.to_dict() == local.to_dict()
    assert remote.to_arrow() == local.to_arrow()
    assert (remote.entry, remote.epsilon, remote.remaining) == (
        local.entry,
        local.epsilon,
        local.remaining,
    )
    for suffix in (".csv", ".json", ".parquet"):
        files = [
            answer.save(tmp_path / f"{index}{suffix}")
            for index, answer in enumerate((local, remote))
        ]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_figure_is_the_same_on_the_other_side(study, sql):
    from discreet.show import figures

    plan = study.sql(sql, epsilon=1)
    local = plan.release()
    remote = answer_of(json.loads(answer_body(local, "t", view_json(plan.query))))
    assert (
        figures.make("release", answer=remote).to_dict()
        == figures.make("release", answer=local).to_dict()
    )


def test_a_changed_number_is_seen(study):
    plan = study.sql(QUESTIONS[0], epsilon=1)
    content = json.loads(answer_body(plan.release(), "t", view_json(plan.query)))
    content["record"]["numbers"]["a1"]["value"][0] += 1
    with pytest.raises(EngineFailed, match="damaged"):
        answer_of(content)
