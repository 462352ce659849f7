"""What can go wrong, as one small tree.

    DiscreetError
    ├── InvalidParameter   a parameter cannot be used (also a ValueError)
    ├── QueryRefused       the question is outside the language or the policy
    ├── BudgetExceeded     the ledger has too little ε left
    ├── LedgerDamaged      the ledger is not what it was
    └── EngineFailed       a machine part (engine, entropy) did not do its work

Messages quote parameters, never data. Everything but `EngineFailed` is raised before any spend.
"""


class DiscreetError(Exception):
    """Anything that discreet raises on purpose."""


class InvalidParameter(DiscreetError, ValueError):
    """A parameter cannot be used; the message says what must hold and what was given."""


class QueryRefused(DiscreetError):
    """The question cannot be asked; the message names the nearest thing that works."""


class BudgetExceeded(DiscreetError):
    """The spend would pass the total; nothing was spent."""


class LedgerDamaged(DiscreetError):
    """The ledger is broken, rolled back or foreign; it is never opened as a fresh budget."""


class EngineFailed(DiscreetError):
    """A part of the machine failed; whatever was spent before stays spent."""
