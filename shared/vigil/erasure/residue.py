"""What the files of a home still say of a person, after the streams are swept.

The broker's own interface can't tell: what it doesn't show any more may lie in a file. So every
file under the home is read, and the person's name is looked for in the forms in which Vigil and
the broker write it: in a subject, in a session key, in a field that names a user. Logs are mended
in place, since the server goes on writing them. What the broker will rewrite by itself is told
apart from what stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..backup import projections, workspaces
from ..files import written
from ..subjects import check_part
from . import blocks
from .theirs import PART, prefixes_of

Kind = Literal["log", "index", "records", "memory", "workspace", "others", "settings", "files"]
SUBJECTS: Final = "index.db"
SCHEDULES: Final = "sched.db"
INDEXES: Final = (SUBJECTS, SCHEDULES, "thw.db")
"""The broker writes them anew every 2 to 2.5 minutes if something changed, and when it ends."""
MEMORY: Final = "memory"
"""The folder of what memory services make of the log."""
WINDOW: Final = 4 * 1024 * 1024
OVERLAP: Final = 1024
REACH: Final = 256
"""In bytes, before a name and behind it: no form in which it is written goes further."""
_ANY: Final = rf"(?:{PART}|\*)"
"""Of a subject, or of a filter: consumers have such, and the server's log of a refused one."""
_EDGE: Final = r"(?<![A-Za-z0-9_-])"
_SENTENCES: Final = "error|event|exception|line|problem|reason|text|what"
"""Keys of a line of a log under which somebody, or a library, says something in words."""
WHY: Final[dict[Kind, str]] = {
    "log": "a log that can't be mended",
    "index": "the broker has not rewritten its index yet",
    "records": "the broker removed a record without overwriting it, for its age, say; end Vigil "
    "(`vigil down`) and run this again: then it's overwritten",
    "memory": "a memory service made it and did not remove it; end Vigil (`vigil down`) and run "
    "this again: then it's overwritten",
    "workspace": "a tool wrote it, and the folder isn't theirs: look at it, remove it by hand",
    "others": "it is in what belongs to somebody else, whose dead letter they ordered to be tried "
    "again, say; it stays",
    "settings": "a person wrote it: change it by hand",
    "files": "a person wrote it: change it by hand",
}


class Residue(msgspec.Struct, frozen=True, kw_only=True):
    """A file that still names the person."""

    file: str
    """Relative to the home."""
    kind: Kind
    count: int

    @property
    def why(self) -> str:
        return WHY[self.kind]


def names_of(user: str) -> re.Pattern[bytes]:
    """Return what finds a person in the bytes of a file; the group is the name itself.

    >>> bool(names_of("ann").search(b"x session.vigil.ann.t1.turn"))
    True
    >>> bool(names_of("ann").search(b'Subscription Violation, Subject "signal.*.ann.>"'))
    True
    >>> bool(names_of("ann").search(b"session.vigil.bob.ann.turn bob:vigil:ann ann"))
    False
    """
    name = re.escape(check_part("user", user))
    begins = (*prefixes_of(user, _ANY), rf"(?:live|doing)\.{_ANY}", rf"rpc\.memory\.{PART}\.{_ANY}")
    forms = (
        rf"{_EDGE}(?:{'|'.join(begins)})\.(?P<a>{name})(?![A-Za-z0-9_-])",
        rf"{_EDGE}user:(?P<b>{name})(?![A-Za-z0-9_-])",
        rf"{_EDGE}(?P<c>{name}):{PART}:{PART}",
        rf'"(?:user|owner|by|requeued_by)":\s?"(?P<d>{name})"',
        rf"{_EDGE}(?:api|bus):(?P<e>{name})(?![A-Za-z0-9_-])",
    )
    return re.compile("|".join(forms).encode())


def names_in_logs(user: str) -> re.Pattern[bytes]:
    """Return what finds a person in the lines of a log: as elsewhere, or in what a fault says.

    >>> bool(names_in_logs("ann").search(b'{"row": "ann", "error": "no room for ann"}'))
    True
    >>> bool(names_in_logs("ann").search(b'{"row": "ann", "error": "no room for joann"}'))
    False
    """
    name = re.escape(check_part("user", user))
    told = rf'"(?:{_SENTENCES})":\s?"(?:[^"\\]|\\.)*?{_EDGE}(?P<f>{name})(?![A-Za-z0-9_-])'
    return re.compile(names_of(user).pattern + b"|" + told.encode())


def _in_index(user: str) -> re.Pattern[bytes]:
    """Return what finds a person in an index, which holds subjects in pieces."""
    name = re.escape(check_part("user", user))
    return re.compile(rf"(?<![A-Za-z0-9_-])(?P<a>{name})\.".encode())


def mend_logs(home: Path, user: str) -> int:
    """Overwrite every line of the logs that names the person; return how many there were."""
    pattern = names_in_logs(user)
    count = 0
    for path in _logs(home):
        with path.open("r+b") as file:
            offset = 0
            for line in path.open("rb"):
                if pattern.search(line):
                    file.seek(offset)
                    file.write(erased_line(line.rstrip(b"\r\n")))
                    count += 1
                offset += len(line)
    return count


def erased_line(line: bytes) -> bytes:
    """Return a line of the same length that tells nothing.

    >>> erased_line(b'{"session": "ann:vigil:t1"}')
    b'{"erased": "xxxxxxxxxxxxx"}'
    >>> erased_line(b"ann:vigil:t")
    b'xxxxxxxxxxx'
    """
    begin, end = b'{"erased": "', b'"}'
    left = len(line) - len(begin) - len(end)
    return begin + b"x" * left + end if left > 0 else b"x" * len(line)


def scan(home: Path, user: str, *, swept_ns: int | None = None, files: str = "*") -> list[Residue]:
    """Return every file under `home` that names the person.

    Args:
        swept_ns: when the last record was deleted; an index that is newer holds what is live.
        files: a pattern of file names, to look at some only.
    """
    found: list[Residue] = []
    for path in sorted(_files(home, files)):
        kind, name = kind_of(home, path), _name(home, path)
        if kind == "memory" and path.name.startswith(projections.DATABASE):
            # Rows, not bytes: a database that others' memories are in may well have the name.
            count = projections.owners(path).count(user) if path.suffix == ".db" else 0
            found += [Residue(file=name, kind=kind, count=count)] if count else []
            continue
        is_subjects = kind == "index" and path.name == SUBJECTS
        if is_subjects and _is_fresh(path, swept_ns):
            continue
        pattern = _in_index(user) if is_subjects else _pattern_of(kind, user)
        try:
            places = [start for start, _ in _found(path, user.encode(), pattern)]
            of_others = _of_others(path, places, user) if kind == "records" else 0
        except FileNotFoundError:  # the broker removed it meanwhile
            continue
        except OSError:
            if kind != "workspace":
                raise
            continue  # a tool of somebody else locked it, or hid it too deep
        if count := len(places) - of_others:
            found.append(Residue(file=name, kind=kind, count=count))
        if of_others:
            found.append(Residue(file=name, kind="others", count=of_others))
    return found


def _files(home: Path, pattern: str) -> Iterator[Path]:
    """Yield files by the pattern of their names; links among them, but for those that tools made:
    such lead to where there is no end."""
    waiting = [home]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif fnmatch(entry.name, pattern) and _is_file(home, path):
                    yield path


def _is_file(home: Path, path: Path) -> bool:
    with contextlib.suppress(OSError):
        is_tools = path.relative_to(home).parts[0] in workspaces.FOLDERS
        return stat.S_ISREG((path.lstat() if is_tools else path.stat()).st_mode)
    return False


def _name(home: Path, path: Path) -> str:
    """Return the name of a file as it can be written down."""
    return os.fsencode(path.relative_to(home).as_posix()).decode("utf-8", "replace")


def _of_others(path: Path, places: Sequence[int], user: str) -> int:
    """Return how many of the places in a block are in records of somebody else's."""
    if not places or path.suffix != ".blk":
        return 0
    key, count = blocks.key_of(path), 0
    for record in blocks.records(path):
        within = [p for p in places if 0 <= p - record.offset < len(record.data)]
        if within and blocks.is_of_another(record, key, user):
            count += len(within)
    return count


def schedules_of(home: Path, user: str) -> list[str]:
    """Return the subjects of the person's schedules that the broker's index still has.

    After a crash it reads them from there again, although the schedules are long deleted.
    """
    name, found = re.escape(check_part("user", user)), set()
    pattern = re.compile(
        rf"timer\.(?:session|system)\.{PART}\.{name}\.{PART}\.[0-9a-f]{{32}}".encode()
    )
    for path in (home / "nats").rglob(SCHEDULES):
        found |= set(pattern.findall(path.read_bytes()))
    return sorted(subject.decode() for subject in found)


def _is_fresh(index: Path, swept_ns: int | None) -> bool:
    """Whether an index was written after everything that it could still be wrong about."""
    try:
        written = index.stat().st_mtime_ns
        blocks = [block.stat().st_mtime_ns for block in index.parent.glob("*.blk")]
    except FileNotFoundError:  # the broker replaces it just now
        return False
    is_later = swept_ns is not None and written > swept_ns
    return is_later or (bool(blocks) and written >= max(blocks))


def _pattern_of(kind: Kind, user: str) -> re.Pattern[bytes]:
    if kind in ("settings", "workspace", "files"):
        return re.compile(rf"{_EDGE}(?P<a>{re.escape(user)})(?![A-Za-z0-9_-])".encode())
    return names_in_logs(user) if kind == "log" else names_of(user)


def kind_of(home: Path, path: Path) -> Kind:
    """Tell what a file of a home is."""
    parts = path.relative_to(home).parts
    if parts[0] in workspaces.FOLDERS:
        return "workspace"
    if path.name in INDEXES:
        return "index"
    if parts[0] == "logs" or path.suffix == ".log":
        return "log"
    if parts[0] in ("vigil.toml", "agents", "skills"):
        return "settings"
    if parts[0] == MEMORY:
        return "memory"
    return "records" if parts[0] == "nats" else "files"


def _logs(home: Path) -> list[Path]:
    return [*(home / "nats").glob("*.log"), *(home / "logs").glob("*")]


def _found(path: Path, name: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where the name begins and ends, each place once.

    The pattern is tried only around the name itself, which is found a thousand times faster.
    """
    seen = -1
    for offset, data in _pieces(path):
        for begin, end in _around(name, data):
            for match in pattern.finditer(data, begin, end):
                group = match.lastgroup or 0
                start = offset + match.start(group)
                if start > seen:
                    seen = start
                    yield start, offset + match.end(group)


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield where a piece of a file begins, and the piece, which overlaps with the one before.

    Holes are passed over: the vectors' files, and the room that is set aside, are nearly nothing
    else, and no name goes across zeros.
    """
    with path.open("rb") as file:
        for begin, end in written(file.fileno()):
            at, kept = begin, b""
            while chunk := os.pread(file.fileno(), min(WINDOW, end - at), at):
                piece = kept + chunk
                yield at - len(kept), piece
                at, kept = at + len(chunk), piece[-OVERLAP:]


def _around(name: bytes, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places around the name; those that touch are one.

    >>> list(_around(b"ann", b"-" * 300 + b"ann, ann" + b"-" * 1000 + b"ann"))
    [(44, 564), (1052, 1567)]
    """
    begin = end = 0
    at = data.find(name)
    while at >= 0:
        if at - REACH > end:
            if end:
                yield begin, end
            begin = at - REACH
        end = at + len(name) + REACH
        at = data.find(name, at + 1)
    if end:
        yield begin, end
