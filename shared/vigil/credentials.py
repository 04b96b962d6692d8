"""nkeys: one user per service, made once, kept in files that only the owner may read.

A seed never leaves this machine unless a person copies it; the broker's configuration holds
public keys only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import nkeys

from .errors import ConfigError
from .topology import ADMIN, ROLES

CREDENTIALS: Final = (ADMIN, *ROLES)


def ensure(folder: Path) -> dict[str, str]:
    """Make the seeds that are missing in `folder`; return role -> public key."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    publics: dict[str, str] = {}
    for role in CREDENTIALS:
        path = folder / f"{role}.seed"
        if not path.exists():
            seed: bytes = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
            write_private(path, seed)
        publics[role] = nkeys.from_seed(load(folder, role)).public_key.decode()
    return publics


def load(folder: Path, role: str) -> bytes:
    """Return the seed of `role`.

    Raises:
        ConfigError: there is none, or it can't be read.
    """
    path = folder / f"{role}.seed"
    try:
        return path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(
            f"no credential for {role}: {path} can't be read ({error.strerror}); "
            "`vigil up` or `vigil provision` makes it"
        ) from error


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
