"""The file of a backup: a tar that checks itself.

    streams/SESSIONS, streams/KV_TOKENS, …     snapshots, in the broker's own format
    home/vigil.toml, home/workspaces/…, …      files of the home
    manifest.json                              what there is, with versions and a SHA-256 of each
    digest                                     SHA-256 of every byte before this part

It holds secrets (the credentials of all services, and everything that was ever said), so only its
owner may read it. It is written under another name and renamed when it is whole; any tar can open
it. One changed byte is found, and the part that it is in is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from datetime import datetime
from io import BufferedRandom
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from ..contracts import Instant
from ..errors import VigilError
from .snapshots import Snapshot

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DIGEST: Final = "digest"
READ_BYTES: Final = 128 * 1024
BLOCK: Final = tarfile.BLOCKSIZE
_UNREADABLE: Final = (tarfile.TarError, ValueError, OverflowError, MemoryError)
"""What a damaged header leads to: the last three where it gives a size that can't be."""
Report = Callable[[str, int], None]
"""Is told the part at work and how many bytes of it are done."""


class ArchiveError(VigilError):
    """The file is no backup, or not the one that was written."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    size: int
    sha256: str
    is_executable: bool = False
    uid: int = 0
    """Whose file it was, where that matters."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive says of itself."""

    format: int
    vigil: str
    nats_server: str
    made_at: Instant
    streams: dict[str, Snapshot]
    """In the order in which they were taken."""
    parts: tuple[Part, ...]
    floors: dict[str, int] = {}
    """By stream, up to which turn BOARD has everything (`board`)."""


def _header(part: Part, at: datetime) -> bytes:
    info = tarfile.TarInfo(part.name)
    info.size, info.mtime = part.size, int(at.timestamp())
    info.mode = 0o700 if part.is_executable else 0o600
    info.uid = info.gid = part.uid
    return info.tobuf(tarfile.GNU_FORMAT)


class Writer:
    """Writes an archive, part by part, under a temporary name.

    Raises: OSError, when the disk is full, say; then nothing is left of it.
    """

    def __init__(self, path: Path, made_at: datetime) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}")
        self._made_at = made_at
        self._parts: list[Part] = []
        # Of one that was killed; in a container the next has the same pid.
        self._temporary.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._file: BufferedRandom = os.fdopen(os.open(self._temporary, flags, 0o600), "w+b")

    def part(self, name: str, *, is_executable: bool = False, uid: int = 0) -> PartWriter:
        """Begin a part, whose size isn't known yet; close it before the next."""
        part = Part(name=name, size=0, sha256="", is_executable=is_executable, uid=uid)
        return PartWriter(self._file, part, self._made_at)

    def add(self, writer: PartWriter) -> None:
        """End a part."""
        self._parts.append(writer.close())

    def add_bytes(self, name: str, data: bytes) -> None:
        writer = self.part(name)
        writer.write(data)
        self.add(writer)

    def add_file(self, name: str, descriptor: int) -> None:
        """Add an opened file as it is now, and close it."""
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            is_executable = bool(found.st_mode & stat.S_IXUSR)
            uid = found.st_uid if os.geteuid() == 0 else 0
            writer = self.part(name, is_executable=is_executable, uid=uid)
            while chunk := file.read(READ_BYTES):
                writer.write(chunk)
            self.add(writer)

    def finish(
        self, *, vigil: str, nats_server: str, streams: dict[str, Snapshot], floors: dict[str, int]
    ) -> Manifest:
        """Write the manifest and the digest, and give the file its name."""
        manifest = Manifest(
            format=FORMAT,
            vigil=vigil,
            nats_server=nats_server,
            made_at=self._made_at,
            streams=streams,
            floors=floors,
            parts=tuple(self._parts),
        )
        self.part(MANIFEST).close(msgspec.json.encode(manifest))
        self._file.flush()
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, "sha256").hexdigest()
        self._file.seek(0, os.SEEK_END)
        self.part(DIGEST).close(digest.encode())
        self._file.write(b"\0" * 2 * BLOCK)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        return manifest

    def abort(self) -> None:
        """Leave nothing behind; harmless after the end."""
        with contextlib.suppress(OSError):  # what it still held doesn't fit either
            self._file.close()
        self._temporary.unlink(missing_ok=True)


class PartWriter:
    """One part; its header is written again once its size is known."""

    def __init__(self, file: BufferedRandom, part: Part, at: datetime) -> None:
        self._file, self._part, self._at = file, part, at
        self._start = file.tell()
        self._hash = hashlib.sha256()
        self.size = 0
        file.write(_header(part, at))

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def close(self, data: bytes = b"") -> Part:
        self.write(data)
        self._file.write(b"\0" * (-self.size % BLOCK))
        self._file.seek(self._start)
        part = replace(self._part, size=self.size, sha256=self._hash.hexdigest())
        self._file.write(_header(part, self._at))
        self._file.seek(0, os.SEEK_END)
        return part


class Archive:
    """A backup that was checked from its first byte to its last."""

    def __init__(self, path: Path, manifest: Manifest, offsets: dict[str, tuple[int, int]]) -> None:
        self._path = path
        self._offsets = offsets
        self.manifest = manifest

    @classmethod
    def open(cls, path: Path, report: Report = lambda name, done: None) -> Archive:
        """Check the whole file.

        Raises:
            ArchiveError: naming the part that isn't what was written.
            OSError: it can't be read.
        """
        checked, offsets = _walk(path, report)
        if DIGEST not in offsets:
            after = next(reversed(checked), "its begin")
            raise ArchiveError(f"{path} is not whole: it ends after {after}")
        manifest = _manifest(path, offsets)
        for part in manifest.parts:
            if checked.get(part.name) != part:
                raise ArchiveError(f"{path} is damaged: {part.name} is not what was written")
        if set(checked) - {MANIFEST, DIGEST} != {part.name for part in manifest.parts}:
            raise ArchiveError(f"{path} is damaged: {MANIFEST} doesn't list what there is")
        _check_digest(path, offsets[DIGEST])
        return cls(path, manifest, offsets)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part."""
        offset, size = self._offsets[name]
        yield from _chunks(self._path, offset, size)

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))

    def size(self, name: str) -> int:
        return self._offsets[name][1]


def _walk(path: Path, report: Report) -> tuple[dict[str, Part], dict[str, tuple[int, int]]]:
    """Read every part -> (what each is, where each begins and its size)."""
    parts: dict[str, Part] = {}
    offsets: dict[str, tuple[int, int]] = {}
    last = "its begin"
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                last = info.name
                parts[last] = _part(path, info, report)
                offsets[last] = (info.offset_data, info.size)
    except _UNREADABLE as error:
        what = "damaged" if parts else "no backup of Vigil, or damaged"
        reason = str(error) or "a part of it is said to be larger than can be read"
        raise ArchiveError(f"{path} is {what} after {last}: {reason}") from error
    return parts, offsets


def _part(path: Path, info: tarfile.TarInfo, report: Report) -> Part:
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(path, info.offset_data, info.size):
        digest.update(chunk)
        size += len(chunk)
        report(info.name, size)
    if size < info.size:
        raise ArchiveError(f"{path} is not whole: it ends within {info.name}")
    return Part(
        name=info.name,
        size=size,
        sha256=digest.hexdigest(),
        is_executable=bool(info.mode & stat.S_IXUSR),
        uid=info.uid,
    )


def _chunks(path: Path, offset: int, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while size > 0 and (chunk := file.read(min(READ_BYTES, size))):
            size -= len(chunk)
            yield chunk


def _manifest(path: Path, offsets: dict[str, tuple[int, int]]) -> Manifest:
    if MANIFEST not in offsets:
        raise ArchiveError(f"{path} has no {MANIFEST}: it is no backup of Vigil")
    data = b"".join(_chunks(path, *offsets[MANIFEST]))
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ArchiveError(f"{path} is damaged: {MANIFEST} can't be read ({error})") from error
    if manifest.format != FORMAT:
        raise ArchiveError(
            f"{path} has format {manifest.format}, this Vigil knows {FORMAT}: use Vigil "
            f"{manifest.vigil} or newer"
        )
    return manifest


def _check_digest(path: Path, where: tuple[int, int]) -> None:
    """Compare the bytes between the parts, too: headers and padding."""
    offset, size = where
    digest = hashlib.sha256()
    for chunk in _chunks(path, 0, offset - BLOCK):
        digest.update(chunk)
    tail = b"".join(_chunks(path, offset, size + (-size % BLOCK) + 3 * BLOCK))
    end = b"\0" * (-size % BLOCK + 2 * BLOCK)
    if tail != digest.hexdigest().encode() + end:
        raise ArchiveError(f"{path} is damaged: between its parts, in {MANIFEST} or in {DIGEST}")
