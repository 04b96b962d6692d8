"""A workspace: the folder where the tools of one agent and owner work.

What is in it was written by commands that nobody vouches for, so no path is believed. A file is
reached from the workspace's own descriptor, name by name, and no name may be a symbolic link: then
neither ``..`` nor a link leads out, and nothing that is exchanged meanwhile does either. What isn't
a regular file or a folder isn't opened at all: a pipe could make us wait for ever.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from vigil.errors import InvalidInput, NotFound, Unavailable
from vigil.subjects import Scope

from ..sandbox.users import user_of

DEPTH_MAX: Final = 32
NAME_BYTES_MAX: Final = 200
NAMES_MAX: Final = 500
"""Of a folder that is listed."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a file."""

    data: bytes
    size: int
    """Of the whole file."""


class FolderEntry(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A name in a folder."""

    name: str
    kind: str
    """``file``, ``folder``, ``link`` or ``other``."""
    size: int


Names = tuple[str, ...]
"""A path, name by name; empty: the workspace itself."""


def names_of(path: str, folder: Path) -> Names:
    """Take a path apart. One that begins with the workspace's own place is taken as inside it.

    >>> names_of("./a//b.txt", Path("/w"))
    ('a', 'b.txt')
    >>> names_of("/w/a", Path("/w"))
    ('a',)

    Raises:
        InvalidInput: it leads out, or can't be a path.
    """
    inside = path
    if path.startswith("/"):
        own = f"{folder}/"
        if not f"{path}/".startswith(own):
            raise InvalidInput("path", "must be inside of the workspace; give it relative to it")
        inside = path[len(own) :]
    names = tuple(name for name in inside.split("/") if name not in ("", "."))
    if ".." in names:
        raise InvalidInput("path", "must not contain '..'")
    if len(names) > DEPTH_MAX:
        raise InvalidInput("path", f"must have at most {DEPTH_MAX} folders")
    for name in names:
        if "\0" in name or len(os.fsencode(name)) > NAME_BYTES_MAX:
            raise InvalidInput("path", f"{name[:32]!r} is no name of a file here")
    return names


class Workspace:
    """The folder of one scope.

    Its methods block and belong into a thread.

    Args:
        root: of all workspaces. Whatever is beside a scope's folder is outside of its box.
    """

    def __init__(self, root: Path, scope: Scope) -> None:
        self.scope = scope
        self.uid = user_of(scope)
        self._beside = root.absolute() / scope.agent
        self.folder = self._beside / scope.owner

    def beside(self, ending: str) -> Path:
        """Return a file beside the folder, out of sight of commands; no owner has a dot in it."""
        return self._beside / f"{self.scope.owner}.{ending}"

    def make(self) -> None:
        """Make the folder, for nobody else to look into. Raises: Unavailable."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self._beside.parent, self._beside):
                folder.chmod(0o700)
            if self.uid is not None and self.folder.stat().st_uid != self.uid:
                self._own_all(self.uid)
        except OSError as error:
            raise Unavailable(f"the workspace can't be made: {error.strerror}") from error

    def names_of(self, path: str) -> Names:
        """Take a path of this workspace apart. Raises: InvalidInput."""
        return names_of(path, self.folder)

    # ------------------------------------------------------------ reading

    def read(self, names: Names, offset: int, bytes_max: int) -> Piece | list[FolderEntry]:
        """Read part of a file, or list a folder.

        Raises:
            NotFound: it isn't there.
            InvalidInput: it's no regular file, or behind a symbolic link.
        """
        with _explained(names), self._open(names) as opened:
            mode = os.fstat(opened)
            if stat.S_ISDIR(mode.st_mode):
                return _listed(opened)
            if not stat.S_ISREG(mode.st_mode):
                raise InvalidInput("path", "is neither a file nor a folder")
            return Piece(data=os.pread(opened, bytes_max, offset), size=mode.st_size)

    @contextlib.contextmanager
    def _open(self, names: Names) -> Iterator[int]:
        """Open a file or a folder."""
        with contextlib.ExitStack() as stack:
            opened = self._root(stack)
            for name in names[:-1]:
                opened = _kept(stack, os.open(name, _FOLDER, dir_fd=opened))
            if names:
                opened = _kept(stack, os.open(names[-1], _READ, dir_fd=opened))
            yield opened

    def _root(self, stack: contextlib.ExitStack) -> int:
        return _kept(stack, os.open(self.folder, _FOLDER))

    # ------------------------------------------------------------ writing

    def write(self, names: Names, data: bytes, *, part: str) -> None:
        """Write a file: afterwards it has all of `data`, or is as it was before.

        What isn't whole yet is beside the workspace: nobody can read there, under a name that
        isn't marked, what a crash left of it.

        Args:
            part: a name for that; the same for each try.

        Raises:
            InvalidInput: it can't be a file there.
            Unavailable: nothing could be written, the disk is full, say.
        """
        if not names:
            raise InvalidInput("path", "is the workspace itself; name a file")
        with _explained(names), contextlib.ExitStack() as stack:
            folder = self._root(stack)
            for name in names[:-1]:
                folder = _kept(stack, self._enter(folder, name))
            self._replace(folder, names[-1], data, self.beside(f"{part}.part"))

    def _enter(self, folder: int, name: str) -> int:
        """Open a folder; make it, if it isn't there."""
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
            opened = os.open(name, _FOLDER, dir_fd=folder)
            self._own(opened)
            return opened

    def _replace(self, folder: int, name: str, data: bytes, part: Path) -> None:
        part.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), _mode(folder, name))
                self._own(file.fileno())
                os.fsync(file.fileno())
            os.rename(part, name, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def _own(self, opened: int) -> None:
        """Give what we made to whom the commands run as."""
        if self.uid is not None and os.fstat(opened).st_uid != self.uid:
            os.fchown(opened, self.uid, self.uid)

    def _own_all(self, uid: int) -> None:
        """Give everything that is there already: it was made or restored by somebody else.

        The folder itself is the last, so that who is interrupted begins anew.
        """
        for _, folders, names, opened in os.fwalk(self.folder, follow_symlinks=False):
            for name in (*folders, *names):
                os.chown(name, uid, uid, dir_fd=opened, follow_symlinks=False)
        os.chown(self.folder, uid, uid, follow_symlinks=False)

    def renew(self) -> bool:
        """Put a new folder in the place of an empty one; return whether it was empty.

        What was kept in the folder itself, attributes, times, rights, goes with it.
        """
        fresh = self.beside("new")
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(mode=0o700)
            if self.uid is not None:
                os.chown(fresh, self.uid, self.uid)
            fresh.rename(self.folder)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.rmdir()
            return False
        return True


def _kept(stack: contextlib.ExitStack, opened: int) -> int:
    stack.callback(os.close, opened)
    return opened


def _mode(folder: int, name: str) -> int:
    """Return the rights of a file that is replaced: a script stays one that can be run."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o600
    return stat.S_IMODE(found.st_mode) & 0o700 | 0o600 if stat.S_ISREG(found.st_mode) else 0o600


def _listed(opened: int) -> list[FolderEntry]:
    """Return what is in a folder, by name; at most :data:`NAMES_MAX` and one."""
    found: list[FolderEntry] = []
    with os.scandir(opened) as entries:
        for entry in entries:
            found.append(_entry(entry))
            if len(found) > NAMES_MAX:
                break
    return sorted(found)


def _entry(entry: os.DirEntry[str]) -> FolderEntry:
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    try:
        mode = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return FolderEntry(name=name, kind="other", size=0)
    for kind, is_kind in (("link", stat.S_ISLNK), ("folder", stat.S_ISDIR), ("file", stat.S_ISREG)):
        if is_kind(mode.st_mode):
            return FolderEntry(name=name, kind=kind, size=mode.st_size)
    return FolderEntry(name=name, kind="other", size=0)


@contextlib.contextmanager
def _explained(names: Names) -> Iterator[None]:
    """Say in words what the system says in numbers."""
    path = "/".join(names) or "."
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{path} is not there") from error
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise Unavailable(f"{path} can't be written: {error.strerror}") from error
        raise InvalidInput(
            "path", f"{path}: {_WORDS.get(error.errno or 0, error.strerror)}"
        ) from error


_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
_WORDS: Final = {
    errno.ELOOP: "is, or leads through, a symbolic link; those aren't followed",
    errno.ENOTDIR: "leads through something that is no folder, or through a symbolic link",
    errno.EISDIR: "is a folder",
    errno.ENXIO: "is neither a file nor a folder",
}
