"""Creating a file that several processes, on one machine or many, may want to create at once."""

from __future__ import annotations

import contextlib
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
