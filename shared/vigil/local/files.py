"""Files that several processes may want at once: whoever is first creates one, or locks it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path


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
