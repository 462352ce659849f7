"""A release that is a file: what goes wrong while it is written."""

from fractions import Fraction

import pytest

import discreet
from discreet import EngineFailed, InvalidParameter, Ledger, QueryRefused
from discreet.files.recorded_file import released
from discreet.release.account import Asking
from discreet.release.budget import Budget


def test_an_error_that_quotes_a_row_is_kept_nowhere(tmp_path):
    def write(_draft):
        raise ValueError("canary")

    with pytest.raises(
        EngineFailed,
        match=(
            r"^cells\.parquet could not be made, since its rows could not be written \(ValueError\)"
        ),
    ) as caught:
        released(tmp_path / "cells.parquet", write, None)
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer", [b"\xff", b"", b"[1]", b"null", b'{"a":1}', b'{"file":"x"}', b'{"sha256":"x"}']
)
def test_an_answer_that_is_no_file_is_refused_as_one(tmp_path, answer):
    """Before the spend where the target is taken, and as the answer that it is where the question
    is the same.
    """
    target = tmp_path / "cells.parquet"
    question = {"query": "q", "epsilon": Fraction(1, 10), "request_id": "r", "version": lambda: "1"}
    with Ledger.open(tmp_path / "ledger", new=True) as ledger:
        ledger.create("s", 1)
        ledger.record(ledger.spend("r", "q", "0.1", study="s", data_version="1"), answer)
        with pytest.raises(QueryRefused, match="released before, but not as a file"):
            released(target, lambda _: {}, Asking(budget=Budget(ledger, "s"), **question))
        target.write_bytes(b"mine")
        with pytest.raises(InvalidParameter, match=r"cells\.parquet"):
            released(target, lambda _: {}, Asking(budget=Budget(ledger, "s"), **question))
        with pytest.raises(InvalidParameter, match="request_id must be new"):
            discreet.sum(
                [1], bounds=(0, 1), epsilon="0.1", ledger=ledger, study="s", request_id="r"
            )
        assert (target.read_bytes(), ledger.verify()) == (b"mine", 3)


def test_an_answer_that_is_no_tape_is_refused_as_one(tmp_path):
    with Ledger.open(tmp_path / "ledger", new=True) as ledger:
        ledger.create("s", 1)
        account = {"ledger": ledger, "study": "s", "data_version": "1", "data_name": "ages"}
        with pytest.MonkeyPatch.context() as patch:
            record = Ledger.record
            patch.setattr(Ledger, "record", lambda self, grant, _: record(self, grant, b"\xff"))
            for _ in range(2):
                with pytest.raises(QueryRefused, match="cannot be shown"):
                    discreet.sum([1], bounds=(0, 1), epsilon="0.1", **account)
