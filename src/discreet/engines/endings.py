"""What a file is, by the ending of its name.

For files of rows the name decides alone: the first bytes of a text file may be those of a row.
"""

from __future__ import annotations

from pathlib import Path

CSV, JSON, PARQUET = {".csv", ".tsv", ".txt"}, {".json", ".jsonl", ".ndjson"}, {".parquet", ".pq"}
ROWS = CSV | JSON | PARQUET
DATABASES = {".db", ".sqlite", ".sqlite3", ".duckdb", ".ddb"}
_PACKED = {".gz", ".zst"}


def suffix_of(file: Path) -> str:
    """The suffix of a file that says its format, without the suffix of compression.

    >>> suffix_of(Path("people.2024.CSV.gz")), suffix_of(Path("people"))
    ('.csv', '')
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else "".join(suffixes[-1:])
