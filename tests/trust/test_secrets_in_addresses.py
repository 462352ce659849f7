"""TRUST 40: passwords, tokens and secrets in addresses are shown by no plan and no refusal."""

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet import InvalidParameter, Policy
from discreet.cli.app import app
from discreet.ledger.place import without_secrets

SECRET = "geheim"  # noqa: S105
TOKEN = "discreet_0123456789abcdef_" + "ab" * 32


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://127.0.0.1:9", f"discreet_0123_{SECRET}“"),
        ("http://127.0.0.1:9", f"{SECRET}\n"),
        ("http://127.0.0.1:9", ""),
        (f"http://data.example.org/?key={SECRET}", TOKEN),
        (f"http://me:{SECRET}@data.example.org", TOKEN),
        (f"ftp://me:{SECRET}@x", TOKEN),
        (f"https://[{SECRET}", TOKEN),
        (f"https://data.example.org:{SECRET}", TOKEN),
    ],
)
def test_a_connection_that_is_refused_shows_no_secret(url, token):
    with pytest.raises(InvalidParameter) as refusal:
        discreet.connect(url, token)
    assert SECRET not in str(refusal.value)
    assert refusal.value.__context__ is None


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@host/x",
        f"postgresql://host/x?password={SECRET}",
        f"postgresql://me:a@{SECRET}@host/x",
        f"postgresql://me@here:{SECRET}@host/x",
    ],
)
def test_a_proposed_command_names_no_password(address):
    assert without_secrets(address) == "postgresql://…"


def test_a_plan_on_a_server_shows_none_of_its_address(server_place, tmp_path, monkeypatch):
    parquet.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "people.parquet")
    policy = (
        'study = "study"\nsource = "people.parquet"\nepsilon = "1"\n[columns]\nage = { bounds = [0,'
        " 120] }\n"
    )
    (tmp_path / "study.toml").write_text(policy, "utf-8")
    monkeypatch.chdir(tmp_path)
    with server_place.open(new=True) as ledger:
        ledger.create("study", 1, promise=Policy.load("study.toml").promise)
    ledger_of = ["--ledger", server_place.where, "--anchor", server_place.anchor]
    done = CliRunner().invoke(
        app, ["plan", "study.toml", "SELECT avg(age) FROM people", "--epsilon", "0.1", *ledger_of]
    )
    assert done.exit_code == 0, done.output
    assert "--ledger postgresql://…" in done.output.replace("'", "")
    assert server_place.where not in done.output
