"""`make bench [ONLY=noise]`: every table, or the ones named."""

import sys
from importlib import import_module

TABLES = (
    *("noise", "accuracy", "quantiles", "profile", "joint", "reports", "plans"),
    *("ledger", "study", "engines", "keys", "scale", "serve", "load"),
)


def main(names: list[str]) -> None:
    for name in names or TABLES:
        import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
