"""Files that several processes may want at once, and files that are nearly all holes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ZEROS: Final = bytes(1024 * 1024)


def create(path: Path, data: bytes) -> None:
    """Create `path` whole or not at all; whoever was first wins. Raises: OSError."""
    # A random name: replicas may share the folder, and in containers even the process id.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)


def locked(path: Path) -> int | None:
    """Open and lock a file, until the descriptor is closed or its process ends, however it ends.

    Returns:
        The descriptor; None: somebody else has it.

    Raises:
        OSError: it can't be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait for whoever else reads and rewrites a file of that folder, in this process or another:
    what they wrote would be lost, or be written over. It's made if it isn't there, and nothing
    stays behind.

    Raises: OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def written(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield where a file holds bytes, as begin and end: the rest are holes, which read as zeros.

    Raises: OSError.
    """
    end = 0
    while True:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole from there on, or the end
            raise
        yield begin, end


def overwrite(descriptor: int) -> None:
    """Overwrite what a file holds, down to the disk. Raises: OSError.

    Its holes stay holes: filled, they might take the whole disk.
    """
    for begin, end in written(descriptor):
        at = begin
        while (left := end - at) > 0:
            at += os.pwrite(descriptor, _ZEROS[:left], at)
    os.fsync(descriptor)
