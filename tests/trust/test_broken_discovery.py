"""TRUST 48: a discovery that was paid for and broken off is still to be had, and no refusal
contradicts another.
"""

import shutil

import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import Ledger, LedgerDamaged, QueryRefused

POLICY = """
source = "people.parquet"
unit = "row"
neighbors = "add-remove"
epsilon = "5"
delta = "1e-5"

[columns]
county = { keys = "discover" }
town = { keys = "discover" }
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A study whose discovery was killed between its spend and its record."""
    _write(tmp_path, 100)
    (tmp_path / "study.toml").write_text(POLICY)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with discreet.open(tmp_path / "study.toml") as study, monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", kill)
        with pytest.raises(KeyboardInterrupt):
            study.discover("county", epsilon="2")
        assert study.spent == 2
    return tmp_path


def _write(folder, rows: int) -> None:
    table = pa.table({"county": ["north", "south"] * rows, "town": ["a", "b"] * rows})
    parquet.write_table(table, folder / "people.parquet")


@pytest.mark.parametrize("rows", [100, 101], ids=["the same data", "changed data"])
def test_the_same_discovery_is_answered_under_its_own_spend(broken, rows):
    _write(broken, rows)
    with discreet.open(broken / "study.toml") as study:
        with pytest.raises(
            QueryRefused,
            match=r'of "county" at epsilon 2 that was interrupted.*ask for exactly that',
        ):
            study.discover("town", epsilon="2")
        with pytest.raises(QueryRefused, match=r'of "county" at epsilon 2 that was interrupted'):
            study.discover("county", epsilon="1")
        assert study.discover("county", epsilon="2")["county"] == ("north", "south")
        assert (study.spent, study.ledger.verify()) == (2, 3)


@pytest.mark.parametrize("epsilon", ["2", "1"])
def test_after_a_restore_one_sentence_says_what_to_do(broken, epsilon):
    shutil.copy(broken / "study.ledger", broken / "copy")
    with Ledger.open(broken / "study.ledger") as ledger:
        ledger.record(ledger.spend("r", "q", "0.1", study="study"), b"answer")
    shutil.copy(broken / "copy", broken / "study.ledger")
    with pytest.raises(LedgerDamaged, match="accept=") as refusal:
        discreet.open(broken / "study.toml")
    Ledger.restore(
        broken / "study.ledger", accept=str(refusal.value).partition("accept='")[2][:16]
    ).close()
    with (
        discreet.open(broken / "study.toml") as study,
        pytest.raises(QueryRefused, match=r"had no answer.*declare the keys in the policy"),
    ):
        study.discover("county", epsilon=epsilon)
