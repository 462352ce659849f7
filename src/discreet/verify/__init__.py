"""Checks of the privacy promise that anyone can run: certificates, audits, replays, searches and
attacks.

    certify, check        an exact upper bound on the privacy loss of a plan or statistic; check its
                          file again
    audit, controls       a lower bound on the loss of any mechanism from its outputs; mechanisms
                          that it must catch
    replay                a study's question with and without a unit: same flow, same charge,
                          integers at most Δ apart
    verify_release        who released files, and that no byte of them has changed since
    search_sensitivity    neighbours that refute the sensitivity that you claim for your own
                          function

No module has the name of a function: importing it would hide the function.
"""

from discreet.files.signature import Signed, verify_release
from discreet.verify import attacks, report
from discreet.verify.auditor import Audit, audit
from discreet.verify.certificate import Certificate, certify, check
from discreet.verify.mechanisms import Control, controls
from discreet.verify.rerun import Replay, replay
from discreet.verify.search import Search, search_sensitivity

__all__ = [
    "Audit",
    "Certificate",
    "Control",
    "Replay",
    "Search",
    "Signed",
    "attacks",
    "audit",
    "certify",
    "check",
    "controls",
    "replay",
    "report",
    "search_sensitivity",
    "verify_release",
]


def __dir__() -> list[str]:
    return __all__
