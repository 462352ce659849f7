"""Which question was asked under which id, so that an id always means one question and its answer can be fetched again.

An id belongs to its owner: the ledger stores it as `<name>:<id>`, so nobody can use or probe the id of another. A study
is identified by its ledger and its name, so that two studies with the same file name stay apart. An id accepts only one
body. The ledger keeps the answer; this file keeps only how it is shown. If the machine fails and the file loses the
last ids, the next request stores them again, and the ledger still charges once.
"""

from __future__ import annotations

import json
import re
from typing import Any

from discreet.serve.bodies import REQUEST_ID
from discreet.serve.refusals import Refusal
from discreet.serve.store import Store

FILE = "discreet.requests"  # beside the file of tokens

_SCHEMA = """
CREATE TABLE request (
    study TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL CHECK (length(body) = 32),
    view TEXT NOT NULL,
    content BLOB,
    PRIMARY KEY (id, study)
) STRICT;
"""

_ID = re.compile(REQUEST_ID, re.ASCII)


class Requests(Store):
    schema = _SCHEMA
    forgetful = True

    def claim(self, study: str, name: str, *, body: bytes, view: dict[str, Any]) -> bool:
        """Whether the id is new; an id that was used with another body is refused."""
        with self.opened(write=True) as file:
            added = file.execute(
                "INSERT OR IGNORE INTO request (study, id, body, view) VALUES (?, ?, ?, ?)",
                (study, name, body, json.dumps(view)),
            ).rowcount
            recorded = file.execute("SELECT body FROM request WHERE study = ? AND id = ?", (study, name)).fetchone()
        if recorded != (body,):
            raise Refusal(
                409, "The request_id was used for another question.", "Use a new request_id; nothing was spent."
            )
        return bool(added)

    def forget(self, study: str, name: str) -> None:
        """Remove an id under which nothing was spent."""
        with self.opened(write=True) as file:
            file.execute("DELETE FROM request WHERE study = ? AND id = ? AND content IS NULL", (study, name))

    def keep(self, study: str, name: str, content: bytes) -> bytes:
        """The answer of public numbers under this id: the stored answer, or else this one."""
        key = (study, name)
        with self.opened(write=True) as file:
            file.execute(
                "UPDATE request SET content = coalesce(content, ?) WHERE study = ? AND id = ?", (content, *key)
            )
            row = file.execute("SELECT content FROM request WHERE study = ? AND id = ?", key).fetchone()
        return bytes(row[0])

    def find(self, study: str, name: str) -> tuple[dict[str, Any], bytes | None] | None:
        """How the answer of an id is shown, and the answer itself if all its numbers are public: no ledger keeps it."""
        with self.opened() as file:
            statement = "SELECT view, content FROM request WHERE study = ? AND id = ?"
            row = file.execute(statement, (study, name)).fetchone()
        return None if row is None else (json.loads(row[0]), row[1])


def ledger_id(owner: str, request_id: object) -> str:
    if not isinstance(request_id, str) or not _ID.fullmatch(request_id):
        raise Refusal(
            400,
            "request_id must be 1 to 40 of the characters A–Z, a–z, 0–9, '.', '_' and '-'.",
            "Use a random id for each question, and the same id to repeat it.",
        )
    return f"{owner}:{request_id}"
