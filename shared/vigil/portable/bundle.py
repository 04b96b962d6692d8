"""A folder, or a zip file, of parts, with a manifest that counts and digests each."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

import msgspec

from ..contracts import Instant
from ..errors import VigilError

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a record: more than any that a log takes."""
_BLOCK: Final = 1 << 20
_DAMAGED: Final = (
    KeyError,  # no part has that name
    FileNotFoundError,
    NotADirectoryError,
    RuntimeError,  # also: it's encrypted, or packed in a way that isn't known
    *(ValueError, EOFError, msgspec.MsgspecError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What reading something raises that was cut, changed, or made by somebody else."""


class BundleError(VigilError):
    """It is none, or not whole."""


class ExportedPart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of it."""

    name: str
    count: int
    """Records, or paragraphs of a page; 1 for a file, 0: there is nothing."""
    bytes: int
    sha256: str


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What it holds, whose it is, and what was left out."""

    format: int
    vigil: str
    user: str
    made_at: Instant
    parts: tuple[ExportedPart, ...]
    left_out: dict[str, str]
    """What of theirs is not here, and why."""


class BundlePart:
    """Writes one part."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = self.count = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)

    def line(self, data: bytes) -> None:
        """Write a record as a line."""
        self.write(data + b"\n")
        self.count += 1

    def done(self, name: str) -> ExportedPart:
        digest = self._digest.hexdigest()
        return ExportedPart(
            name=name, count=self.count or int(self.size > 0), bytes=self.size, sha256=digest
        )


class BundleWriter:
    """Writes a bundle beside its place, and puts it there when it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self._parts: list[ExportedPart] = []
        self._zip: zipfile.ZipFile | None = None
        if path.suffix == ".zip":
            descriptor = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "w+b")
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)
        else:
            self._draft.mkdir(mode=0o700)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[BundlePart]:
        """Write a part for as long as the block lasts; one at a time."""
        with self._open(name) as file:
            writer = BundlePart(file)
            yield writer
        self._parts.append(writer.done(name))

    def _open(self, name: str) -> IO[bytes]:
        if self._zip is not None:
            return self._zip.open(name, "w", force_zip64=True)
        path = self._draft / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def finish(
        self, *, vigil: str, user: str, made_at: Instant, left_out: dict[str, str]
    ) -> ExportManifest:
        """Write the manifest, and put all into place. Raises: OSError."""
        manifest = ExportManifest(
            format=FORMAT,
            vigil=vigil,
            user=user,
            made_at=made_at,
            parts=tuple(self._parts),
            left_out=left_out,
        )
        with self._open(MANIFEST) as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        if self._zip is not None:
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._draft.rename(self._path)
        return manifest

    def abort(self) -> None:
        """Remove what isn't finished; nothing happens to what is."""
        if self._zip is not None:
            with contextlib.suppress(ValueError, OSError):
                self._zip.close()
            with contextlib.suppress(OSError):  # what it still held doesn't fit either
                self._file.close()
            self._draft.unlink(missing_ok=True)
        else:
            shutil.rmtree(self._draft, ignore_errors=True)


class Bundle:
    """A bundle that is read. Raises, from each method: BundleError, OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        with self._read("it"):
            self._zip = None if path.is_dir() else zipfile.ZipFile(path)
        data = b"".join(self._blocks(MANIFEST, MANIFEST_BYTES_MAX))
        with self._read(MANIFEST):
            self.manifest = msgspec.json.decode(data, type=ExportManifest)
        if self.manifest.format > FORMAT:
            raise BundleError(f"{path} was made by a newer Vigil ({self.manifest.vigil})")
        self._parts = {part.name: part for part in self.manifest.parts}

    @contextlib.contextmanager
    def _read(self, name: str) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            raise BundleError(
                f"{self._path} is no export of Vigil's, or not whole: {name} is missing or damaged"
            ) from error

    def _open(self, name: str) -> IO[bytes]:
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts:
            raise BundleError(f"{name!r} leads out of {self._path}")
        if self._zip is not None:
            return self._zip.open(name)
        # Also by a link; and what is no file may never end.
        path = (self._path / name).resolve()
        if not path.is_relative_to(self._path.resolve()):
            raise BundleError(f"{name!r} leads out of {self._path}")
        if path.exists() and not path.is_file():
            raise BundleError(f"{self._path}: {name} is no file")
        return path.open("rb")

    def check(self) -> None:
        """Compare each part with what the manifest says of it."""
        for part in self.manifest.parts:
            digest, is_lines, length = hashlib.sha256(), part.name.endswith(".jsonl"), 0
            for block in self._blocks(part.name, part.bytes):
                digest.update(block)
                first, *others = block.split(b"\n") if is_lines else (b"",)
                longest = max(length + len(first), *map(len, others), 0)
                if longest > LINE_BYTES_MAX:
                    raise BundleError(f"{self._path}: {part.name} holds a line that is too long")
                length = len(others[-1]) if others else length + len(first)
            if digest.hexdigest() != part.sha256:
                raise BundleError(f"{self._path}: {part.name} isn't what was written")

    def _blocks(self, name: str, bytes_max: int) -> Iterator[bytes]:
        """Yield a part, never more of it than it's said to have: what is packed may be anything."""
        size = 0
        with self._read(name), self._open(name) as file:
            while block := file.read(_BLOCK):
                size += len(block)
                if size > bytes_max:
                    raise BundleError(f"{self._path}: {name} is larger than it's said to be")
                yield block

    def read(self, name: str, bytes_max: int) -> bytes:
        """Return a part of at most so many bytes."""
        part = self._parts.get(name)
        if part is None or part.bytes > bytes_max:
            why = "is missing" if part is None else "is too large"
            raise BundleError(f"{self._path}: {name} {why}")
        return b"".join(self._blocks(name, part.bytes))

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the records of a part that was checked; none, if there is no such part."""
        if name in self._parts:
            with self._read(name), self._open(name) as file:
                yield from file
