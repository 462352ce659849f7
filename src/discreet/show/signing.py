"""Signatures of released files, with what the ledger records of them and the proof of their privacy
loss.

Each record has one signature, which signs the record and its files. The folder of a report has one
record; the file of an answer belongs to the record of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from discreet.errors import InvalidParameter
from discreet.files import signature
from discreet.files.answer_file import AnswerFile
from discreet.files.signature import ENDING, Signer, signature_place
from discreet.files.writer import Kept, free
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.show.card import proved

_RECORD = ".release.json"


def sign(
    release: Answer | AnswerFile | Report,
    files: Iterable[str | PathLike[str]],
    *,
    key: Signer | str | PathLike[str],
    force: bool = False,
) -> list[Path]:
    """Sign the files of a release, its records among them; the paths of the signatures."""
    if release.plan is None:
        raise InvalidParameter(
            "an answer from a server must be signed by the custodian, who keeps its ledger"
        )
    signer, study, paths = Signer.load(key), release.plan.study, list(map(Path, files))
    _refuse_names(paths)
    records = dict.fromkeys(path for path in paths if path.name.endswith(_RECORD))
    if not records:
        raise InvalidParameter(f"files must include their record, which ends in {_RECORD}")
    for record in records:
        free(signature_place(record), force=force, kept=study.kept)
    about = {
        "study": study.name,
        "entry": release.entry,
        "proof": proved(release.plan) if release.epsilon else {},
    }
    signatures = []
    for target in map(signature_place, records):
        signed = [path for path in paths if len(records) == 1 or signature_place(path) == target]
        signatures.append(
            signature.sign(
                signed, target, signer, study.ledger, about, force=force, kept=study.kept
            )
        )
    return signatures


def _refuse_names(files: Iterable[Path]) -> None:
    """Refuse files with the name of a signature."""
    for file in files:
        if file.name.endswith(ENDING):
            raise InvalidParameter(f"{file.name} has the name of a signature: rename the file")


def refuse_unsigned(
    plan: Plan | ReportPlan,
    records: Sequence[Path],
    files: Iterable[Path] = (),
    *,
    key: str,
    force: bool = False,
    kept: Kept,
) -> None:
    """Refuse, before ε is spent, a release that could not be signed or proved afterwards."""
    Signer.load(key)
    _refuse_names(files)
    for path in map(signature_place, records):
        if path.parent.is_dir():  # a new folder is empty
            free(path, force=force, kept=kept)
    proved(plan)
