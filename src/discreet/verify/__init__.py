"""Trust that does not rest on our word: certificates, audits, replays, searches and attacks, to be run by anyone.

    certify, check        an exact upper bound on the privacy loss of a plan or statistic, and its file checked again
    audit, controls       a lower bound on the loss of any mechanism from its outputs; mechanisms that it must catch
    replay                a study's question with and without a unit: same flow, same charge, integers at most Δ apart
    search_sensitivity    neighbours that break the sensitivity which you claim for your own function

Names are imported when they are first used. No module is called like a function: importing it would hide the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.lazy import found as _found

if TYPE_CHECKING:
    from discreet.verify.auditor import Audit, audit
    from discreet.verify.broken import Control, controls
    from discreet.verify.certificate import Certificate, certify, check
    from discreet.verify.rerun import Replay, replay
    from discreet.verify.search import Search, search_sensitivity

__all__ = [
    "Audit",
    "Certificate",
    "Control",
    "Replay",
    "Search",
    "attacks",
    "audit",
    "certify",
    "check",
    "controls",
    "replay",
    "report",
    "search_sensitivity",
]

_HOMES = {
    "auditor": "Audit audit",
    "certificate": "Certificate certify check",
    "broken": "Control controls",
    "rerun": "Replay replay",
    "search": "Search search_sensitivity",
}
_MODULES = {"attacks": "attacks", "report": "report"}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use (PEP 562)."""
    value = globals()[name] = _found(__name__, name, _HOMES, _MODULES)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
