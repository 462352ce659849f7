"""Ed25519 signatures [RFC8032]: who released these files, and that no byte of them has changed.

    NAME.key              the private key, readable by its owner alone
    NAME.pub              the public key, to be published
    NAME.signature.json   beside the released files: the signed content, the public key, and

    signature = Ed25519( "discreet signature 1", a line break,
                         {study, entry, proof, ledger, files} as JSON )

A file is signed by its length and its SHA-256; the record, with its card, is one of the files. The
ledger is identified by its id, the number of its entries and the SHA-256 of its head. Whoever holds
the ledger can compare them, and nobody else learns anything from them, since every entry has 128
random bits. The same files and ledger give the same bytes.

A signature file must be byte for byte as discreet writes it, so that no change of it goes
unnoticed. A signature shows neither that the noise is right (a certificate does) nor that the key
belongs to the custodian.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter
from discreet.files.writer import NOTHING, Kept, free, new_file, write
from discreet.outside import read_json
from discreet.parameters import quote

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    from discreet.ledger.ledger import Ledger

ENDING = ".signature.json"
_RECORD = ".release.json"
_CONTEXT = b"discreet signature 1\n"
_FIELDS = {"discreet signature", "key", "signed", "signature"}
_SIGNED = {"study", "entry", "proof", "ledger", "files"}
_LARGEST_FILE = 10**7  # the most bytes of a key or a signature

Place: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """A private key, which no output shows."""

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
            raise InvalidParameter(
                f"only its owner may read the private key {file.name}: chmod 600 {file.name}"
            )
        try:
            loaded = load_pem_private_key(content, None)
        except (ValueError, TypeError):
            loaded = None
        if not isinstance(loaded, Ed25519PrivateKey):
            raise InvalidParameter(
                f"{file.name} must be an Ed25519 private key, as `discreet keys new` writes it"
            )
        return cls(loaded)

    @property
    def public(self) -> str:
        """The public key in hexadecimal."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, signed: Mapping[str, Any]) -> str:
        return self._key.sign(_CONTEXT + _canonical(signed)).hex()


def new_keys(name: Place) -> tuple[Path, Path]:
    """Write a new pair of keys to NAME.key and NAME.pub, which must not exist."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    private, public = (Path(f"{os.fspath(name)}{ending}") for ending in (".key", ".pub"))
    for file in (private, public):
        free(file)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(random_digits(4)))
    with new_file(private, private=True) as draft:
        draft.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def signature_place(file: Place) -> Path:
    """The path of the signature of a released file or its record, the same for any suffix.

    >>> (
    ...     signature_place("out/ages.2024.csv").name,
    ...     signature_place("out/ages.2024.release.json").name,
    ... )
    ('ages.2024.signature.json', 'ages.2024.signature.json')
    """
    path = Path(file)
    is_record = path.name.endswith(_RECORD)
    return (
        path.with_name(path.name.removesuffix(_RECORD) + ENDING)
        if is_record
        else path.with_suffix(ENDING)
    )


def sign(
    files: Sequence[Path],
    path: Path,
    signer: Signer,
    ledger: Ledger,
    about: Mapping[str, Any],
    *,
    force: bool = False,
    kept: Kept = NOTHING,
) -> Path:
    """Write the signature of these files, which are in the same folder, and return its path.

    `about` has the study, the entry of the release in the ledger, and the proof of its privacy
    loss.
    """
    head = ledger.recent(about["study"], last=1)[-1]
    commitment = sha256(_canonical([ledger.id, about["study"], head.number, head.hash])).hexdigest()
    signed = {
        **about,
        "ledger": {"id": ledger.id, "entries": head.number, "head": commitment},
        "files": {file.name: measured(file) for file in sorted(files)},
    }
    content = {
        "discreet signature": 1,
        "key": signer.public,
        "signed": signed,
        "signature": signer.sign(signed),
    }
    return write(path, _written(content), force=force, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The content of a signature, after it was checked."""

    study: str
    entry: str
    ledger: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    proof: Mapping[str, Any]
    """The privacy loss proved at the signing, for the ε spent; empty for public numbers."""
    key: str
    """The public key in hexadecimal."""
    record: Mapping[str, Any]
    """The record of the release, with its card."""


def verify_release(path: Place, *, key: Place) -> Signed:
    """The signed content, if no file was changed; `InvalidParameter` names every changed file. No
    data is needed.

    `path` is the signature, a signed file, or the folder of a report; `key` is the public key that
    the custodian published.
    """
    public = _public_key(Path(key))
    signature = _signature_of(Path(path))
    content = _read(signature)
    signed, faults = content["signed"], []
    if not _fits(public, content):
        raise InvalidParameter(
            f"{signature.name} is not signed with {Path(key).name}: it was changed, or it was"
            " signed with another key; get both from the custodian again"
        )
    if content["key"] != public.public_bytes_raw().hex():
        faults.append(f"the key in {signature.name} was changed")
    for name, expected in signed["files"].items():
        file = signature.with_name(name)
        if not file.is_file():
            faults.append(f"{name} is missing")
        elif measured(file) != expected:
            faults.append(f"{name} was changed after it was signed")
    if faults:
        raise InvalidParameter(f"{'; '.join(faults)}: get the files from the custodian again")
    records = [signature.with_name(name) for name in signed["files"] if name.endswith(_RECORD)]
    record = read_json(records[0].read_bytes()) if records else {}
    return Signed(**signed, key=content["key"], record=record)


def measured(file: Path) -> dict[str, Any]:
    """The length and the SHA-256 of a file."""
    with file.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
        return {"bytes": opened.tell(), "sha256": digest}


def _fits(public: Ed25519PublicKey, content: Mapping[str, Any]) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(content["signature"]), _CONTEXT + _canonical(content["signed"]))
    except InvalidSignature:
        return False
    return True


def _signature_of(path: Path) -> Path:
    """The path of a signature: itself, that of a released file, or the only one in a folder."""
    if path.name.endswith(ENDING):
        return path
    if not path.exists():
        raise InvalidParameter(
            f"there is no {path.name} here: name a signature, a file beside it, or its folder"
        )
    folder = path if path.is_dir() else path.parent
    paths = sorted(folder.glob(f"*{ENDING}"))
    if not path.is_dir():
        paths = [
            candidate for candidate in paths if path.name in _read(candidate)["signed"]["files"]
        ]
    if len(paths) != 1:
        problem = (
            f"no signature names {path.name}" if not paths else f"there are {len(paths)} signatures"
        )
        raise InvalidParameter(f"{problem}: name the file that ends in {ENDING}")
    return paths[0]


def _read(file: Path) -> dict[str, Any]:
    """The content of a signature file; refused unless it is byte for byte as discreet writes it."""
    written = _content(file, "a signature")
    changed = InvalidParameter(
        f"{file.name} was changed: it is not as discreet writes it; get it again"
    )
    try:
        content = read_json(written)
        signature, signed = bytes.fromhex(content["signature"]), content["signed"]
        whole = set(content) == _FIELDS and set(signed) == _SIGNED and len(signature) == 64
        # the unsigned part has only one form: 1 is neither 1.0 nor true, and hex digits are
        # lowercase without blanks
        alone = {**content, "discreet signature": 1, "signature": signature.hex()}
        whole = (
            whole
            and _written(alone) == written
            and all(Path(name).name == name for name in signed["files"])
        )
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
        raise InvalidParameter(f"{file.name} must be an Ed25519 public key, such as custodian.pub")
    return loaded


def _content(file: Path, description: str) -> bytes:
    try:
        # the check would read it, and it would be empty after the spend
        if stat.S_ISFIFO(file.stat().st_mode):
            raise InvalidParameter(
                f"{description} must be in a file, and {quote(file.name)} is a pipe: name a file"
            )
        if file.stat().st_size > _LARGEST_FILE:
            raise InvalidParameter(
                f"{quote(file.name)} is too large for {description}: name another file"
            )
        return file.read_bytes()
    except OSError as error:
        raise InvalidParameter(
            f"{description} cannot be read from {quote(file.name)}: {error.strerror}"
        ) from None


def _canonical(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _written(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()
