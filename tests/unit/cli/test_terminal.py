"""What the terminal shows of a ledger holds nothing that the data could be guessed from."""

import json

import pyarrow as pa

from discreet import Policy, Study
from discreet.cli.terminal import ledger_as_json


def test_no_hash_of_the_data_is_in_the_json_of_a_ledger(tmp_path):
    policy = Policy(
        source=pa.table({"x": [1.0, 2.0]}), epsilon=1, columns={"x": {"bounds": (0, 3)}}
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as study:
        study.sql("SELECT sum(x) FROM data", epsilon="0.5").release()
        text = json.dumps(ledger_as_json(study.ledger, ["study"]))
        entries = list(study.ledger.entries("study"))
        assert study.version not in text
        for entry in entries:
            for secret in (entry.question, entry.hash, entry.before):
                assert not secret or secret not in text
        assert any(entry.question for entry in entries)
