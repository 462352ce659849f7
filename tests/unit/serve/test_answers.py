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
        "age": [float(at) for at in range(100)],
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
    "SELECT place, count(*) AS n, avg(age) AS age FROM t GROUP BY place ORDER BY n DESC, place LIMIT 2",
    "SELECT place, sum(age) / count(*) AS mean, 2 * count(*) - 1 AS twice FROM t GROUP BY place HAVING count(*) > 3",
    "SELECT age, count(*) AS n FROM t GROUP BY age ORDER BY age DESC",
    "SELECT level, place, count(*) n FROM t GROUP BY level, place HAVING count(*) > 0 AND count(*) < 9 OR sum(age) > 1",
    "SELECT median(age), quantile(age, 0.9), min(age), max(age), stddev(age) FROM t",
    "SELECT extract(year FROM day) AS year, count(*) AS n FROM t GROUP BY extract(year FROM day) ORDER BY year",
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    policy = discreet.Policy(
        source=TABLE, table="t", columns=COLUMNS, epsilon=1000, neighbors="add-remove", version="1"
    )
    with discreet.Study(policy, ledger=tmp_path_factory.mktemp("answers") / "t.ledger") as made:
        yield made


@pytest.mark.parametrize("sql", QUESTIONS)
def test_an_answer_is_the_same_on_the_other_side(study, sql, tmp_path):
    plan = study.sql(sql, epsilon=1)
    here = plan.release()
    there = answer_of(json.loads(answer_body(here, "t", view_json(plan.query))))
    assert there == here
    assert there.content == here.content
    assert repr(there) == repr(here)
    assert there.to_dict() == here.to_dict()
    assert there.to_arrow() == here.to_arrow()
    assert (there.entry, there.epsilon, there.remaining) == (here.entry, here.epsilon, here.remaining)
    for suffix in (".csv", ".json", ".parquet"):
        files = [answer.save(tmp_path / f"{at}{suffix}") for at, answer in enumerate((here, there))]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_figure_is_the_same_on_the_other_side(study, sql):
    from discreet.show import figures

    plan = study.sql(sql, epsilon=1)
    here = plan.release()
    there = answer_of(json.loads(answer_body(here, "t", view_json(plan.query))))
    assert figures.make("release", answer=there).to_dict() == figures.make("release", answer=here).to_dict()


def test_a_changed_number_is_seen(study):
    plan = study.sql(QUESTIONS[0], epsilon=1)
    told = json.loads(answer_body(plan.release(), "t", view_json(plan.query)))
    told["record"]["numbers"]["a1"]["value"][0] += 1
    with pytest.raises(EngineFailed, match="damaged"):
        answer_of(told)
