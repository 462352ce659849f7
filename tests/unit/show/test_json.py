import json

import pyarrow as pa

from discreet import Policy, Study
from discreet.cli.terminal import plan_as_json
from discreet.ledger.questions import question_text
from discreet.show.json import plan_json

COLUMNS = {"place": {"keys": ["north", "south"]}, "age": {"bounds": [0, 90]}}
TABLE = pa.table({"place": ["north", "south"] * 5, "age": list(range(10))})


def test_the_command_line_and_http_say_the_same_of_a_plan(tmp_path):
    policy = Policy(source=TABLE, table="t", columns=COLUMNS, epsilon=1)
    with Study(policy, ledger=tmp_path / "t.ledger") as study:
        plan = study.sql(
            "SELECT place, count(*) AS n, median(age) FROM t GROUP BY place", epsilon="0.25"
        )
        http, command_line = plan_json(plan), plan_as_json(plan)
    assert (http["epsilon"], http["cost"], http["cells"]) == (
        "1/4",
        command_line["epsilon"],
        command_line["rows"],
    )
    assert [line["title"] for line in http["lines"]] == [
        column["name"] for column in command_line["columns"]
    ]
    for line, column in zip(http["lines"], command_line["columns"], strict=True):
        assert all(
            line[name] == column[name] for name in ("sensitivity", "scale", "step", "within")
        )
        assert line["reach"] == column["accuracy"]
    json.dumps([http, command_line], allow_nan=False)


def test_a_question_is_found_in_its_canonical_text():
    assert question_text('["SELECT count(*)", ["change-one"]]') == "SELECT count(*)"
    assert question_text("sum") == "sum"
    assert question_text(None) == ""
