"""What a replica is called in metrics and traces: by its place, so the same after a restart.

A name that is another one after each start makes another series of everything each time: no rate
goes across a restart, and an alert about what is gone has nothing to compare with. So the replicas
of a service that share a home are numbered, the first by the host's name alone, and a number is
free again as soon as its holder ends, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..files import locked

REPLICAS_MAX: Final = 64


@contextlib.contextmanager
def named(service: str, home: Path) -> Iterator[str]:
    """Hold a name that no other replica of the service in this home has.

    Where nothing can be written, as in a container with a read-only home, it's told by the
    process: there each replica has a host, and mostly a process id, of its own and for good.
    """
    place = f"{service}@{socket.gethostname()}"
    held = _held(home / "run" / "replicas", service)
    if held is None:
        yield f"{place}:{os.getpid()}"
        return
    number, descriptor = held
    try:
        yield place if number == 1 else f"{place}-{number}"
    finally:
        os.close(descriptor)


def _held(folder: Path, service: str) -> tuple[int, int] | None:
    """Take the first free number and its lock; None: there is none, or nowhere to write."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for number in range(1, REPLICAS_MAX + 1):
            descriptor = locked(folder / f"{service}-{number}")
            if descriptor is not None:
                return number, descriptor
    except OSError:
        pass
    return None
