"""TRUST 44: a key or a name cannot command a terminal: whatever is shown escapes it, and every file
keeps it.
"""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Count, DiscreetError, InvalidParameter, Mean, Policy, Study
from discreet.cli import terminal
from discreet.show import figures, html
from shell import discreet, one_after_another

ODD = {
    "erases the screen": "north\x1b[2J",
    "sets a title": "\x1b]0;owned\x07",
    "eight bits": "\x9b31mred",
    "goes back": "south\rnorth",
    "a line of its own": "a\nε 0 spent, 99 left",
    "from right to left": "\u202ehtron",
    "isolated": "\u2066x\u2069",
    "nothing wide": "no\u200brth\u2060\ufeff",
    "a tag": "\U000e0041",
    "deleted": "a\x7fb",
    "a separator": "a\u2028b",
    "markup of rich": "[red]north[/red][link=http://x]y[/link]",
    "markup of HTML": "<img src=x onerror=alert(1)>&amp;",
}
NAME = "pl\x1b[31mace\u202e"
KEYS = list(ODD.values())


def safe(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study whose keys, columns and unit are odd."""
    table = pa.table(
        {NAME: KEYS, "unit\x1b": [str(at) for at in range(len(KEYS))], "age": range(len(KEYS))}
    )
    columns = {NAME: {"keys": KEYS, "other": "\x1brest"}, "age": {"bounds": [0, 100]}}
    policy = Policy(source=table, epsilon=10**6, unit="unit\x1b", max_rows=1, columns=columns)
    return Study(policy, ledger=tmp_path_factory.mktemp("odd") / "study.ledger")


@pytest.fixture(scope="module")
def plan(study):
    return (
        study.by(f'"{NAME}"')
        .ask(**{"n\x07": Count(), "a\ng\u200be": Mean("age")})
        .plan(epsilon=1, size=10)
    )


def test_no_object_commands_a_terminal(study, plan, tmp_path):
    answer = plan.release()
    file = replace(plan, simultaneous=True).release(to=tmp_path / "odd\x1b.parquet")
    for value in (
        study,
        study.policy,
        study.engine,
        plan,
        answer,
        answer.totals(NAME),
        file,
        study.ledger,
        plan.query,
    ):
        assert safe(repr(value)), repr(value)
        assert not hasattr(value, "_repr_html_") or safe(value._repr_html_())
    assert r"north\x1b[2J" in repr(answer)
    assert r"\u202ehtron" in repr(answer)
    # a key with a new line has no line of its own
    assert len(repr(answer).splitlines()) == len(KEYS) + 3
    assert ODD["markup of rich"] in repr(answer)
    assert "&lt;img src=x" in html.of(answer)
    typed = "SELECT '\x1b[2J\u202e<img src=x>' -- \x07"
    answer = replace(answer, query=replace(answer.query, sql=typed))
    for suffix in ("html", "md", "txt"):
        text = answer.save(
            tmp_path / f"it.{suffix}", title="T\x1b\n<img>", caption="\u200b<img>"
        ).read_text("utf-8")
        assert safe(text)
        assert suffix != "html" or "<img" not in text + html.of(answer)
        assert suffix != "md" or "<img" not in text.replace("\\<img", "").partition("```sql")[0]


def test_tables_on_a_terminal_are_safe(study, plan, monkeypatch):
    answer = plan.release()
    for width in (None, 40):  # in a pipe, and narrow on a terminal
        out = io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        if width:
            monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "dumb")
        terminal.show_plan(plan)
        terminal.show_next(plan, plan.cost, ["study\x1b.toml", f'SELECT "{NAME}" FROM data'], {})  # noqa: S608
        terminal.show_answer(answer, "spent \x1b")
        terminal.show_ledger(study.ledger, study.ledger.studies())
        terminal.say_json(terminal.answer_as_json(answer))
        monkeypatch.undo()
        assert safe(out.getvalue())
        if width is None:
            assert ODD["markup of rich"] in out.getvalue()


def test_json_on_a_terminal_is_the_same_value(plan, capsys):
    answer = plan.release()
    terminal.say_json(terminal.answer_as_json(answer))
    assert json.loads(capsys.readouterr().out)["columns"][NAME] == [*KEYS, "\x1brest"]


def test_files_keep_the_value(plan, tmp_path):
    answer = plan.release()
    answer.save(tmp_path / "a.parquet")
    answer.save(tmp_path / "a.json")
    answer.save(tmp_path / "a.csv")
    wanted = [*KEYS, "\x1brest"]
    assert pq.read_table(tmp_path / "a.parquet")[NAME].to_pylist() == wanted
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))[NAME] == wanted
    rows = list(csv.reader(io.StringIO((tmp_path / "a.csv").read_bytes().decode(), newline="")))
    assert [row[0] for row in rows[1:]] == wanted


def test_figures_are_safe_and_whole(plan):
    answer = plan.release()
    chart = figures.make("release", answer=answer, column="n\x07")
    assert safe(json.dumps(chart.to_dict(), ensure_ascii=False))
    picture = figures.svg(chart)
    assert safe(picture)
    ElementTree.fromstring(picture)  # noqa: S314


@pytest.mark.parametrize("name", ODD)
def test_errors_are_one_safe_line(study, name):
    key = ODD[name]
    acts = [
        lambda: Policy(source="x", epsilon=1, columns={key: {"bounds": [5, 1]}}),
        lambda: Policy(source="x", epsilon=1, columns={"a": {"keys": [key, key]}}),
        lambda: Policy(source="x", epsilon=1, columns={"a": {key: 1}}),
        lambda: study.sql(f'SELECT sum("{key}") FROM data', epsilon=1),  # noqa: S608
        lambda: study.sql(f"SELECT count(*) FROM data WHERE age = '{key}'", epsilon=1),  # noqa: S608
        lambda: study.by(key).ask(n=Count()).plan(epsilon=1),
        lambda: study.sql("SELECT count(*) FROM data WHERE nobody = 1", epsilon=1),
    ]
    for act in acts:
        with pytest.raises(DiscreetError) as caught:
            act()
        assert safe(str(caught.value))
        assert "\n" not in str(caught.value)
    error = InvalidParameter(key)
    assert safe(str(error))
    assert str(InvalidParameter(str(error))) == str(error)


def test_the_command_line_is_safe(tmp_path):
    pq.write_table(
        pa.table({"place": KEYS, "age": range(len(KEYS)), NAME: KEYS}), tmp_path / "people.parquet"
    )
    policy = Policy(
        source="people.parquet",
        epsilon=10,
        columns={"place": {"keys": KEYS}, "age": {"bounds": [0, 9]}},
    )
    (tmp_path / "study.toml").write_text(policy.to_toml(), "utf-8")
    sql = "SELECT place, count(*) FROM people GROUP BY place"
    ended = one_after_another(
        [
            ["plan", "study.toml", sql, "--epsilon", "1"],
            ["release", "study.toml", sql, "--epsilon", "1"],
            [
                "release",
                "study.toml",
                f"SELECT count(*) FROM people WHERE place = '{KEYS[0]}'",  # noqa: S608
                "--epsilon",
                "1",
            ],
            ["release", "study.toml", sql, "--epsilon", "1", "--json"],
            ["ledger", "show", "study.toml"],
            ["ledger", "show", "study.toml", "--json"],
            ["ledger", "export", "study.toml"],
            ["plan", "study.toml", f"SELECT \x1b[2J{sql}", "--epsilon", "1"],
            ["plan", "no\x1b[2J.toml", sql, "--epsilon", "1"],
            ["init", "people.parquet", "--unit", "\x1b[2J", "--yes", "-o", "other.toml"],
            ["verify", "no\x1b[2J.json"],
            ["\x1b[2J"],
        ],
        tmp_path,
    )
    for at, one in enumerate(ended):
        assert safe(one.out + one.err), (at, one)
        assert one.code == (0 if at < 7 else 2), (at, one)
    assert r"north\x1b[2J" in ended[1].out


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_noise_on_a_terminal_escapes_what_it_keeps_and_a_pipe_does_not(tmp_path, form):
    mark = {"csv": ",", "tsv": "\t"}[form]
    # some letter is cut
    odd = [key for key in ODD.values() if "\n" not in key and "\r" not in key] * 2000
    lines = [f"people{mark}{NAME}", *(f"{at}{mark}{key}" for at, key in enumerate(odd))]
    (tmp_path / f"in.{form}").write_text("\n".join(lines) + "\n", "utf-8")
    terms = ["--sensitivity", "1", "--epsilon", "1000000", "--column", "people", "--keep", NAME]
    arguments = ["noise", f"in.{form}", "-", *terms]
    piped = discreet(*arguments, cwd=tmp_path).out
    assert NAME in piped
    assert all(key in piped for key in set(odd))
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "discreet", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 2**16):
                shown += part
        os.close(ours)
    assert running.returncode == 0
    assert safe(shown.decode().replace("\r\n", "\n").replace(mark, ""))
    assert shown.count(b"\n") == len(lines)
    assert "north\\x1b[2J" in shown.decode()
