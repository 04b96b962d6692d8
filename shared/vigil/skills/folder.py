"""Skills as folders: read within limits, enabled by a person, and used only as they were enabled.

    $VIGIL_HOME/skills/NAME/SKILL.md, and what it names
                      .enabled/NAME    the digest of the folder as the person saw it

A folder that changed since is no skill any more until it's enabled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..errors import InvalidInput, NotFound
from ..texts.glyphs import hidden_in, is_printable
from ..words.nearest import meant
from .form import FILE, SkillText, check_name, parse

BYTES_MAX: Final = 5 * 1024 * 1024
"""Of all files of a skill together."""
TEXT_BYTES_MAX: Final = 100 * 1024
"""Of a SKILL.md."""
FILES_MAX: Final = 200
DEPTH_MAX: Final = 5
ENABLED_MAX: Final = 100
ENABLED: Final = ".enabled"


class SkillFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A skill with all that belongs to it."""

    text: SkillText
    files: dict[str, bytes]
    """By path, with '/'; SKILL.md is one of them."""
    digest: str
    """SHA-256 over paths and contents, in hex."""


def read(folder: Path, name: str = "") -> SkillFolder:
    """Read a folder as a skill. Blocks.

    Args:
        name: empty: as the folder is called.

    Raises:
        InvalidInput: it is none, and why: too large, links, a SKILL.md that is no good.
        NotFound: there is no such folder.
    """
    if not folder.is_dir() or folder.is_symlink():
        raise NotFound(f"there is no folder {folder.name!r}")
    files = dict(sorted(_files(folder)))
    if FILE not in files:
        raise InvalidInput(FILE, "is not there")
    if len(files[FILE]) > TEXT_BYTES_MAX:
        raise InvalidInput(FILE, f"has more than {TEXT_BYTES_MAX} bytes")
    text = text_of(files[FILE])
    if text is None:
        raise InvalidInput(FILE, "is not UTF-8")
    return SkillFolder(
        text=parse(name or folder.resolve().name, text), files=files, digest=_digest(files)
    )


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    size = 0
    for count, path in enumerate(_walk(folder, 1), start=1):
        relative = path.relative_to(folder).as_posix()
        if count > FILES_MAX:
            raise InvalidInput("skill", f"has more than {FILES_MAX} files")
        if not is_printable(relative):
            raise InvalidInput("skill", f"{ascii(relative)[:80]} is no name of a file")
        with path.open("rb") as file:
            data = file.read(BYTES_MAX - size + 1)
        size += len(data)
        if size > BYTES_MAX:
            raise InvalidInput("skill", f"has more than {BYTES_MAX} bytes")
        if hidden := _hidden_in(data):
            raise InvalidInput(relative, f"holds what a person can't see: U+{ord(hidden):04X}")
        yield relative, data


def text_of(data: bytes) -> str | None:
    """Return the text of a file, which a model may be shown; None: it is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _hidden_in(data: bytes) -> str:
    """Return the first character of a text that nobody sees: a model reads each file of a skill as
    if the person had said it."""
    text = text_of(data) or ""
    return hidden_in(text.replace("\r\n", "\n").replace("\f", "\n"))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if depth >= DEPTH_MAX:
                    raise InvalidInput("skill", f"is more than {DEPTH_MAX} folders deep")
                yield from _walk(Path(entry.path), depth + 1)
            elif stat.S_ISREG(mode):
                yield Path(entry.path)
            else:
                raise InvalidInput("skill", f"{entry.name!r} is a link, or no file")


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for path, data in files.items():
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


# ---------------------------------------------------------------- enabled ones


def enable(home: Path, found: SkillFolder) -> None:
    """Put a skill among those that may be used, as it was read. Blocks.

    Args:
        home: the folder of all skills.

    Raises:
        InvalidInput: there are as many as there may be.
    """
    name = found.text.name
    marks = home / ENABLED
    marks.mkdir(parents=True, exist_ok=True, mode=0o700)
    if len(names(home) - {name}) >= ENABLED_MAX:
        raise InvalidInput("skill", f"there are {ENABLED_MAX} already; remove one")
    disable(home, name)
    for path, data in found.files.items():
        target = home / name / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(data)
    (marks / name).write_text(found.digest)


def disable(home: Path, name: str) -> bool:
    """Remove a skill; whether there was one. Blocks. Raises: InvalidInput, it's no name."""
    check_name(name)
    was_there = (home / ENABLED / name).exists()
    (home / ENABLED / name).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(home / name)
    return was_there


def names(home: Path) -> set[str]:
    """Return the names of those that were enabled."""
    try:
        return {entry.name for entry in os.scandir(home / ENABLED)}
    except FileNotFoundError:
        return set()


def none_called(home: Path, name: str) -> NotFound:
    """Return the refusal of a name that no enabled skill has, with the nearest. Blocks."""
    return NotFound(f"there is no skill {name!r}{meant(name, sorted(names(home)))}")


def find(home: Path, name: str) -> SkillFolder:
    """Read an enabled skill. Blocks.

    Raises:
        NotFound: none of that name is enabled.
        InvalidInput: it isn't as it was enabled.
    """
    check_name(name)
    try:
        digest = (home / ENABLED / name).read_text()
    except FileNotFoundError:
        raise none_called(home, name) from None
    found = read(home / name, name)
    if found.digest != digest:
        raise InvalidInput("skill", f"{name} was changed since it was enabled: enable it again")
    return found
