"""The anchor's file: read, advanced, torn, damaged."""

import threading

import pytest

from discreet import LedgerDamaged
from discreet.ledger.anchor import Anchor, AnchorFile, Head


@pytest.fixture
def tmp_path(in_memory):
    return in_memory


def head(study: str, count: int) -> Head:
    return Head(study=study, count=count, hash=f"{count:064x}", spent=count, total=10**15)


@pytest.fixture
def file(tmp_path) -> AnchorFile:
    file = AnchorFile(tmp_path / "anchor")
    file.create(Anchor(ledger="id", schema="schema"))
    return file


def test_heads_move_forward_and_never_back(file):
    """TRUST 25."""
    for count in (1, 2, 5, 4, 3, 5):
        file.advance(head("s", count))
    file.advance(head("ä" * 100, 7))
    file.advance(head("s", 6))
    assert {name: known.count for name, known in file.read().heads.items()} == {
        "s": 6,
        "ä" * 100: 7,
    }
    assert (file.read().ledger, file.read().schema) == ("id", "schema")


def test_a_torn_write_leaves_the_head_before(file):
    """TRUST 5: the line that is overwritten is never the newest."""
    for count in range(1, 8):
        before = file.path.read_bytes()
        file.advance(head("s", count))
        after = file.path.read_bytes()
        if len(before) != len(after):
            continue  # the first head comes by a rename
        changed = [index for index in range(len(after)) if before[index] != after[index]]
        for stop in changed:
            file.path.write_bytes(after[:stop] + before[stop:])
            assert file.read().heads["s"].count == count - 1 or stop == changed[-1]
        file.path.write_bytes(after)
        assert file.read().heads["s"].count == count


def test_the_head_before_is_kept_by_a_writer_that_never_reads(file):
    """TRUST 5: what it knows of the file from its own writes says which line is the older one."""
    file.advance(head("other", 1))
    for count in range(1, 8):
        file.advance(head("s", count))
        lines = file.path.read_bytes().split(b"\n")[3:5]
        kept = [
            AnchorFile(file.path)._read_lines(file.path.read_bytes()[:4096] + 2 * (line + b"\n"))
            for line in lines
        ]
        assert {anchor.heads["s"].count for anchor, _ in kept} == {max(1, count - 1), count}


def test_every_flip_is_refused_or_harmless(file):
    """TRUST 24: at worst the head before the last is taken."""
    file.advance(head("s", 1))
    file.advance(head("s", 2))
    whole = file.path.read_bytes()
    refused = 0
    for index in range(0, len(whole), 3):
        file.path.write_bytes(
            whole[:index] + bytes([whole[index] ^ 1 << index % 8]) + whole[index + 1 :]
        )
        try:
            anchor = file.read()
        except LedgerDamaged:
            refused += 1
        else:
            assert (anchor.ledger, anchor.schema, anchor.heads["s"].count) in {
                ("id", "schema", 1),
                ("id", "schema", 2),
            }
    assert refused > 1000


def test_a_cut_anchor_is_refused(file):
    """TRUST 24."""
    file.advance(head("s", 1))
    whole = file.path.read_bytes()
    for length in [*range(0, len(whole), 7), 4096]:
        file.path.write_bytes(whole[:length])
        if length == 4096:
            assert file.read().heads == {}  # a whole anchor of a ledger without studies
            continue
        with pytest.raises(LedgerDamaged, match="anchor is damaged: put anchor back"):
            file.read()


def test_a_missing_anchor_is_refused(file):
    file.path.unlink()
    for verb in (file.read, lambda: file.advance(head("s", 1))):
        with pytest.raises(LedgerDamaged, match="anchor is missing: put anchor back"):
            verb()


def test_a_first_anchor_is_made_once(file):
    with pytest.raises(FileExistsError):
        file.create(Anchor(ledger="other", schema=""))
    assert file.read().ledger == "id"


def test_threads_lose_no_head(file):
    """TRUST 6: also while new studies replace the file."""

    def work(number: int) -> None:
        for count in range(1, 30):
            file.advance(head(f"s{number}", count))
            file.advance(head("all", count))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: known.count for name, known in file.read().heads.items()} == {
        "all": 29,
        **{f"s{number}": 29 for number in range(6)},
    }


def test_a_content_that_is_read_while_another_thread_reads_one_gives_its_own_heads(file):
    """TRUST 6: otherwise a ledger is compared with the heads of another moment, or of a restored
    copy.
    """
    contents = {}
    for count in (1, 2):
        file.advance(head("s", count))
        contents[count] = file.path.read_bytes()

    class Interrupted(AnchorFile):
        """What is known is replaced by another thread as soon as it is known."""

        @property
        def _known(self):
            return self.kept

        @_known.setter
        def _known(self, known):
            self.kept = known
            if known[0] == contents[1]:
                other = threading.Thread(target=self.parse, args=[contents[2]])
                other.start()
                other.join()

    assert Interrupted(file.path).parse(contents[1])[0].heads["s"].count == 1
