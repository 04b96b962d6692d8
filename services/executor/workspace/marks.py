"""Which files of a workspace descend from what somebody outside wrote (SPEC X-3).

Content that was fetched can be written to a file and read back later, by a loop that has nothing
to do with outside: that must not wash it clean. So a file that is written by a tainted call is
marked before it is written; what is read from it taints again. What a command does with files
nobody follows: if it is tainted itself, reaches the network, or could read a marked file, the whole
workspace is marked before it runs.

The marks are beside the workspace, where no command sees them. A workspace is clean again when it
is empty and no command, nor a server that was given it, runs there; then it is exchanged for a new
folder, since one that is empty may still say something: by its attributes, its times, its rights.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from vigil.errors import Unavailable

from .workspace import Names, Workspace

PATHS_MAX: Final = 1000
"""Marked paths; with more, all is marked."""


class MarkedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """What is marked."""

    is_all: bool = False
    paths: frozenset[str] = frozenset()

    @property
    def is_any(self) -> bool:
        return self.is_all or bool(self.paths)

    def has(self, names: Names) -> bool:
        """Tell whether what is at a path, or anything below it, is marked."""
        path = "/".join(names)
        below = f"{path}/" if path else ""
        return self.is_all or any(p == path or p.startswith(below) for p in self.paths)


ALL: Final = MarkedPaths(is_all=True)
CLEAN: Final = MarkedPaths()


class Marks:
    """The marks of one workspace.

    Its methods block for as long as a small file takes to write, and belong into a thread. They
    hold between processes, too.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.beside("marks.json")
        self._lock = workspace.beside("lock")
        self._running = workspace.beside("running")

    @contextlib.contextmanager
    def reading(self, names: Names) -> Iterator[MarkedPaths]:
        """Look, and let nobody write meanwhile: what is read is what was looked at."""
        with self._hold():
            yield self._load()

    @contextlib.contextmanager
    def writing(self, names: Names, *, is_tainted: bool) -> Iterator[None]:
        """Mark a file that a tainted call is about to write, and take the mark off that a clean
        one has written anew.
        """
        with self._hold():
            marked = self._load()
            path = "/".join(names)
            if is_tainted:
                self._store(self._with(marked, path))
            yield
            if not is_tainted and path in marked.paths:
                self._store(MarkedPaths(is_all=marked.is_all, paths=marked.paths - {path}))

    def _with(self, marked: MarkedPaths, path: str) -> MarkedPaths:
        """A command that runs may copy the file to anywhere before it ends."""
        if marked.is_all or len(marked.paths) >= PATHS_MAX or self._is_running():
            return ALL
        return MarkedPaths(paths=marked.paths | {path})

    def begin(self, *, is_tainted: bool) -> int:
        """Let a command run; return what to give to :meth:`end`."""
        running = _opened(self._running)
        try:
            with self._hold():
                is_alone = not self._is_running()
                fcntl.flock(running, fcntl.LOCK_SH)
                self._mark_for_command(is_tainted=is_tainted, is_alone=is_alone)
        except BaseException:
            os.close(running)
            raise
        return running

    def _mark_for_command(self, *, is_tainted: bool, is_alone: bool) -> None:
        """Mark all, or take all marks off. Another command may yet write what it knows."""
        marked = self._load()
        if marked.is_any and is_alone and not is_tainted and self._workspace.renew():
            self._store(CLEAN)
        elif is_tainted or marked.is_any:
            self._store(ALL)

    def end(self, running: int) -> bool:
        """Tell whether a command that has ended may have seen what is from outside.

        Never raises: the command has run, and must not be taken for one that has not.
        """
        try:
            with self._hold():
                return self._load().is_any
        except (Unavailable, OSError):
            return True
        finally:
            os.close(running)

    # ------------------------------------------------------------ storing

    def _is_running(self) -> bool:
        running = _opened(self._running)
        try:
            fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(running)
        return False

    @contextlib.contextmanager
    def _hold(self) -> Iterator[None]:
        held = _opened(self._lock)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            os.close(held)

    def _load(self) -> MarkedPaths:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=MarkedPaths)
        except FileNotFoundError:
            return CLEAN
        except (OSError, msgspec.DecodeError):
            return ALL  # nobody can tell any more, so nothing is taken as clean

    def _store(self, marked: MarkedPaths) -> None:
        """Raises: Unavailable; then nothing may be written or run."""
        part = self._file.with_suffix(".part")
        try:
            with part.open("wb") as file:
                file.write(msgspec.json.encode(marked))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._file)
        except OSError as error:
            raise Unavailable(f"the marks can't be written: {error.strerror}") from error


def _opened(path: Path) -> int:
    """Open a file to lock. Closing it lets go of the lock."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"the marks can't be reached: {error.strerror}") from error
