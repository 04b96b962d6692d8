"""The folders in which tools work: `workspaces/{agent}/{owner}` and `mcp/{server}` under a home.

What commands of a model left there may be anything: links to elsewhere, files and folders that
nobody may read, pipes, files of nothing but holes, folders nested deeper than a path can be long;
and what works there may exchange one for another meanwhile. We may well be root. So everything is
reached from an opened folder, name by name, and no name may be a link. Beside an owner's folder lie
the executor's own notes on it, `{owner}.{ending}`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..files import overwrite

FOLDERS: Final = ("workspaces", "mcp")
"""What a home has of them."""
PATH_BYTES_MAX: Final = 3000
"""Of what a backup keeps: the system takes no path of more than 4096."""
ROUNDS_MAX: Final = 100_000
"""Levels of folders that are removed at a time; beyond, somebody makes new ones all the while."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


# ---------------------------------------------------------------- erasing


def scrub(root: Path, is_theirs: Callable[[str], bool]) -> int:
    """Overwrite and remove the folders of whom `is_theirs` says so; return how many.

    Nobody should be at work in them. May be repeated, and others may do the same meanwhile.

    Args:
        root: the workspaces of a home; need not exist.
        is_theirs: whether an owner is the person that is erased.

    Raises: OSError, one of them can't be removed.
    """
    count = 0
    with contextlib.ExitStack() as stack:
        try:
            opened = _kept(stack, os.open(root, _FOLDER))  # a link of the operator's is followed
        except (FileNotFoundError, NotADirectoryError):
            return 0
        for name in sorted(os.listdir(opened)):  # noqa: PTH208 - by its descriptor
            agent = _enter(opened, name)
            if agent is not None:
                _kept(stack, agent)
                theirs = [one for one in os.listdir(agent) if is_theirs(one.partition(".")[0])]  # noqa: PTH208
                count += sum(_remove(agent, one) for one in sorted(theirs))
    return count


def _remove(parent: int, name: str) -> bool:
    """Overwrite and remove a file, or a folder with all in it -> whether it was a folder."""
    folder = _enter(parent, name)
    if folder is None:
        _drop(parent, name)
        return False
    try:
        _empty(folder)
    finally:
        os.close(folder)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=parent)
    return True


def _empty(top: int) -> None:
    """Remove everything in a folder. Raises: OSError.

    What is two levels down is moved up first: so it doesn't matter how deep it goes.
    """
    for _ in range(ROUNDS_MAX):
        if not (names := os.listdir(top)):
            return
        for name in names:
            folder = _enter(top, name)
            if folder is None:
                _drop(top, name)
                continue
            try:
                _flatten(folder, top)
            finally:
                os.close(folder)
            _remove_empty(top, name)
    raise OSError(errno.ENOTEMPTY, "something works in a folder that is to be removed")


def _flatten(folder: int, top: int) -> None:
    """Remove the files of a folder, and move its folders to `top`."""
    for name in os.listdir(folder):
        inner = _enter(folder, name)
        if inner is None:
            _drop(folder, name)
            continue
        os.close(inner)
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)


def _remove_empty(parent: int, name: str) -> None:
    """Remove a folder, unless something came into it meanwhile."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
            raise


def _drop(parent: int, name: str) -> None:
    """Overwrite a file and remove it; a link, a pipe or a device is only removed."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            _unlock(parent, name, 0o600)
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(name, flags, dir_fd=parent)
            try:
                if stat.S_ISREG(os.fstat(opened).st_mode):  # still
                    overwrite(opened)
            finally:
                os.close(opened)
        os.unlink(name, dir_fd=parent)


# ---------------------------------------------------------------- keeping


def files(home: Path) -> Iterator[Path]:
    """Yield the plain files that are there, in a stable order: no links, pipes or devices, and
    nothing whose path can't be written down or is too long for one."""
    for name in FOLDERS:
        waiting = [home / name]
        while waiting:
            folder = waiting.pop()
            found = sorted(_inside(folder), key=lambda entry: entry.name)
            yield from (Path(one.path) for one in found if one.is_file(follow_symlinks=False))
            inner = [Path(one.path) for one in found if one.is_dir(follow_symlinks=False)]
            waiting += reversed(inner)


def _inside(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing, if it is gone or may not be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if _is_usable(entry.path)]
    except OSError:
        return []


def _is_usable(path: str) -> bool:
    """Whether a path can be written down, and isn't too long for one."""
    try:
        return len(path.encode("utf-8")) <= PATH_BYTES_MAX
    except UnicodeEncodeError:
        return False


def open_plain(home: Path, path: Path) -> int | None:
    """Open a file that `files` found; None, if it, or a folder on the way, is no more what it was.

    One that may not be read is opened all the same, if that can be done: it is ours.
    """
    first, *folders, name = path.relative_to(home).parts
    with contextlib.ExitStack() as stack:
        try:
            folder = _kept(stack, os.open(home / first, _FOLDER))
            for part in folders:
                folder = _kept(stack, os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder))
            opened = _open_unlocked(folder, name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                return None
            raise
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        os.close(opened)
        return None


def _open_unlocked(folder: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        _unlock(folder, name, mode | 0o400)
        opened = os.open(name, flags, dir_fd=folder)
        os.fchmod(opened, mode)
        return opened


def give(home: Path, path: Path, uid: int) -> None:
    """Give a file that was written again, and the folders on the way to it, to whom they were.

    The executor runs commands as somebody else if it is root: who that is stays the same on every
    machine. Others can't give anything away, and needn't.
    """
    if uid == 0 or os.geteuid() != 0:
        return
    parts = path.relative_to(home).parts
    inside = 3 if parts[0] == FOLDERS[0] else 2
    for depth in range(inside, len(parts) + 1):
        os.chown(home.joinpath(*parts[:depth]), uid, uid, follow_symlinks=False)


# ---------------------------------------------------------------- inside


def _kept(stack: contextlib.ExitStack, opened: int) -> int:
    stack.callback(os.close, opened)
    return opened


def _enter(parent: int, name: str) -> int | None:
    """Open a folder, and make it one that may be read and emptied; None, if it is none."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            return None
        _unlock(parent, name, 0o700)
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def _unlock(parent: int, name: str, mode: int) -> None:
    """Change the rights of a file or folder; what has become a link meanwhile is left alone."""
    opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_ISLNK(os.fstat(opened).st_mode):
            Path(f"/proc/self/fd/{opened}").chmod(mode)  # there is no fchmod without opening it
    finally:
        os.close(opened)
