"""Signatures: who released these files, and that no byte of them was changed since; Ed25519 [RFC8032].

    NAME.key              the private key, readable by its owner alone       NAME.pub    the public key, to be published
    NAME.signature.json   beside the released files: what is signed, the public key, and

    signature = Ed25519( "discreet signature 1", a new line, {study, entry, proof, ledger, files} as JSON )

A file counts by its length and its SHA-256; the record, with its card, is one of the files. The ledger is named by its
id, the number of its entries and the SHA-256 of its head: whoever holds the ledger can compare it, and nobody else
learns anything from it, since every entry has 128 random bits. The same files and the same ledger give the same bytes.

A signature file is read only as it is written, to the byte, so that no byte of it can be changed unnoticed either. What
it does not do: show that the noise is right (a certificate does), or that the key is that of the custodian.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter
from discreet.files.writer import NOTHING, Kept, free, new_file, write
from discreet.parameters import quote

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from discreet.ledger.ledger import Ledger

ENDING = ".signature.json"
_RECORD = ".release.json"
_CONTEXT = b"discreet signature 1\n"
_FIELDS = {"discreet signature", "key", "signed", "signature"}
_SIGNED = {"study", "entry", "proof", "ledger", "files"}
_LARGEST_FILE = 10**7
"""Bytes of a key or a signature."""

_PIECE = 2**20

Place: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """A private key that was read; it shows nothing of itself."""

    _key: Ed25519PrivateKey

    @classmethod
    def load(cls, key: Signer | Place) -> Signer:
        """The key in a file that only its owner can read."""
        if isinstance(key, Signer):
            return key
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        file = Path(key)
        content = _content(file, "a private key")
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise InvalidParameter(f"only its owner may read the private key {file.name}: chmod 600 {file.name}")
        try:
            loaded = load_pem_private_key(content, None)
        except (ValueError, TypeError):
            loaded = None
        if not isinstance(loaded, Ed25519PrivateKey):
            raise InvalidParameter(f"{file.name} must be a private key of Ed25519, as `discreet keys new` writes it")
        return cls(loaded)

    @property
    def public(self) -> str:
        """The public key in hexadecimal."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, signed: Mapping[str, Any]) -> str:
        return self._key.sign(_CONTEXT + _canonical(signed)).hex()


def new_keys(name: Place) -> tuple[Path, Path]:
    """The files of a new pair of keys, NAME.key and NAME.pub; neither may exist."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private, public = (Path(f"{os.fspath(name)}{ending}") for ending in (".key", ".pub"))
    for file in (private, public):
        free(file)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(random_digits(4)))
    with new_file(private, private=True) as draft:
        draft.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def signature_place(file: Place) -> Path:
    """The place of the signature of a released file or its record: one for all files that differ in their ending.

    >>> signature_place("out/ages.2024.csv").name, signature_place("out/ages.2024.release.json").name
    ('ages.2024.signature.json', 'ages.2024.signature.json')
    """
    path = Path(file)
    is_record = path.name.endswith(_RECORD)
    return path.with_name(path.name.removesuffix(_RECORD) + ENDING) if is_record else path.with_suffix(ENDING)


def sign(
    files: Sequence[Path],
    place: Path,
    signer: Signer,
    ledger: Ledger,
    about: Mapping[str, Any],
    *,
    force: bool = False,
    kept: Kept = NOTHING,
) -> Path:
    """Write the signature of these files, which lie in its folder, and give its place.

    `about` has the study, the entry under which the ledger has the release, and the proof of its loss.
    """
    head = ledger.recent(about["study"], last=1)[-1]
    commitment = sha256(_canonical([ledger.id, about["study"], head.number, head.hash])).hexdigest()
    signed = {
        **about,
        "ledger": {"id": ledger.id, "entries": head.number, "head": commitment},
        "files": {path.name: measured(path) for path in sorted(files)},
    }
    content = {"discreet signature": 1, "key": signer.public, "signed": signed, "signature": signer.sign(signed)}
    return write(place, _written(content), force=force, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """What a signature says, after all of it was checked."""

    study: str
    entry: str
    ledger: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    proof: Mapping[str, Any]
    """The loss that was proved, for the ε that was spent, when it was signed; empty for public numbers."""
    key: str
    """The public key in hexadecimal."""
    record: Mapping[str, Any]
    """What is told of the release, with its card."""


def verify_release(path: Place, *, key: Place) -> Signed:
    """What was signed, if every file is as it was; `InvalidParameter` names all that was changed. No data is needed.

    `path` is the signature, a file that it signs, or the folder of a report; `key` is the public key of the custodian,
    from where they publish it.
    """
    public = _public_key(Path(key))
    place = _signature_of(Path(path))
    content = _read(place)
    signed, faults = content["signed"], []
    if not _fits(public, content):
        raise InvalidParameter(
            f"{place.name} is not signed with {Path(key).name}: it was changed, or another key has signed it; "
            "get both from the custodian again"
        )
    if content["key"] != public.public_bytes_raw().hex():
        faults.append(f"the key in {place.name} was changed")
    for name, expected in signed["files"].items():
        file = place.with_name(name)
        if not file.is_file():
            faults.append(f"{name} is missing")
        elif measured(file) != expected:
            faults.append(f"{name} was changed after it was signed")
    if faults:
        raise InvalidParameter(f"{'; '.join(faults)}: get the files from the custodian again")
    records = [place.with_name(name) for name in signed["files"] if name.endswith(_RECORD)]
    record = json.loads(records[0].read_bytes()) if records else {}
    return Signed(**signed, key=content["key"], record=record)


def measured(file: Path) -> dict[str, Any]:
    """The length and the SHA-256 of a file."""
    digest, length = sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
            length += len(piece)
    return {"bytes": length, "sha256": digest.hexdigest()}


def _fits(public: Ed25519PublicKey, content: Mapping[str, Any]) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(content["signature"]), _CONTEXT + _canonical(content["signed"]))
    except InvalidSignature:
        return False
    return True


def _signature_of(path: Path) -> Path:
    """The signature that is meant: a file itself, the one beside a file that it names, or the one in a folder."""
    if path.name.endswith(ENDING):
        return path
    if not path.exists():
        raise InvalidParameter(f"there is no {path.name} here: name a signature, a file beside it, or its folder")
    folder = path if path.is_dir() else path.parent
    places = sorted(folder.glob(f"*{ENDING}"))
    if not path.is_dir():
        places = [place for place in places if path.name in _read(place)["signed"]["files"]]
    if len(places) != 1:
        what = f"no signature names {path.name}" if not places else f"there are {len(places)} signatures"
        raise InvalidParameter(f"{what}: name the file that ends in {ENDING}")
    return places[0]


def _read(place: Path) -> dict[str, Any]:
    """The content of a signature file; refused unless it is as it was written, to the byte."""
    written = _content(place, "a signature")
    changed = InvalidParameter(f"{place.name} was changed: it is not as discreet writes it; get it again")
    try:
        content = json.loads(written)
        signature, signed = bytes.fromhex(content["signature"]), content["signed"]
        whole = set(content) == _FIELDS and set(signed) == _SIGNED and len(signature) == 64
        # what nobody signs has one form alone: 1 is neither 1.0 nor true, and digits are small and without blanks
        alone = {**content, "discreet signature": 1, "signature": signature.hex()}
        whole = whole and _written(alone) == written and all(Path(name).name == name for name in signed["files"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise changed from None
    if not whole:
        raise changed
    return dict(content)


def _public_key(file: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _content(file, "a public key")
    try:
        loaded = load_pem_public_key(content)
    except (ValueError, TypeError):
        loaded = None
    if not isinstance(loaded, Ed25519PublicKey):
        raise InvalidParameter(f"{file.name} must be a public key of Ed25519, such as custodian.pub")
    return loaded


def _content(file: Path, what: str) -> bytes:
    try:
        if stat.S_ISFIFO(file.stat().st_mode):  # read once to be checked, it would be empty after the spend
            raise InvalidParameter(f"{what} must be in a file, and {quote(file.name)} is a pipe: name a file")
        if file.stat().st_size > _LARGEST_FILE:
            raise InvalidParameter(f"{quote(file.name)} is too large for {what}: name another file")
        return file.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"{what} cannot be read from {quote(file.name)}: {error.strerror}") from None


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _written(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()
