"""nkeys: one user per service, made once, kept in files that only the owner may read.

A seed never leaves this machine unless a person copies it; the broker's configuration holds
public keys only.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import nkeys

from ..errors import ConfigError, InvalidInput
from ..fields.secrets import file_of_provider
from ..outside.programs import Outside
from ..texts.trouble import reason_of
from ..topology import ADMIN, ROLES

CREDENTIALS: Final = (ADMIN, *ROLES)
OUTSIDE: Final = "outside"
"""The folder of the credentials of outside programs, one file each."""


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


def cluster_secret(folder: Path) -> str:
    """Return the secret by which the nodes of a cluster know each other; make it if missing."""
    path = folder / "cluster.secret"
    if not path.exists():
        write_private(path, secrets.token_hex(32).encode())
    return path.read_text("ascii").strip()


def outside(folder: Path) -> list[Outside]:
    """Return the credentials of outside programs, by user and name.

    Raises:
        ConfigError: a file that isn't one.
    """
    found: list[Outside] = []
    for path in sorted((folder / OUTSIDE).glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Outside))
        except (OSError, msgspec.MsgspecError, InvalidInput) as error:
            raise ConfigError(f"{path} is no credential: {reason_of(error)}") from error
    return sorted(found)


def outside_seed(folder: Path, credential: Outside) -> Path:
    """Return where the seed of an outside program's credential is."""
    return folder / OUTSIDE / f"{credential.id}.seed"


def make_outside(
    folder: Path, user: str, name: str, *, is_admin: bool = False, since: datetime | None = None
) -> Outside:
    """Make the credential of an outside program that speaks for `user`, and its seed.

    Raises:
        InvalidInput: the user or the name can't be part of a subject, or it's there already.
    """
    seed: bytes = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public_key = nkeys.from_seed(seed).public_key.decode()
    made = Outside(user=user, name=name, public_key=public_key, is_admin=is_admin, since=since)
    path = folder / OUTSIDE / f"{made.id}.json"
    if path.exists():
        raise InvalidInput("name", f"{made.id} is there already; revoke it, or take another name")
    # The seed first: a credential counts once its other file is there.
    write_private(outside_seed(folder, made), seed + b"\n")
    write_private(path, msgspec.json.format(msgspec.json.encode(made)))
    return made


def begin_drop(folder: Path, credential: Outside) -> None:
    """Have a credential count no more. Its seed stays, until the broker has forgotten it, too."""
    (folder / OUTSIDE / f"{credential.id}.json").unlink(missing_ok=True)


def begun_drops(folder: Path) -> list[Outside]:
    """Return the credentials of which only the seed is there: half made, or half revoked."""
    seeds = sorted((folder / OUTSIDE).glob("*.seed"))
    ids = [seed.stem for seed in seeds if not seed.with_suffix(".json").exists()]
    pairs = [id_.split(".") for id_ in ids]
    return [Outside(user=pair[0], name=pair[1], public_key="") for pair in pairs if len(pair) == 2]


def drop_outside(folder: Path, credential: Outside) -> None:
    """Forget a credential and its seed; harmless if it's gone."""
    begin_drop(folder, credential)
    outside_seed(folder, credential).unlink(missing_ok=True)


def load(folder: Path, role: str) -> bytes:
    """Return the seed of `role`.

    Raises:
        ConfigError: there is none, or it can't be read, or isn't one.
    """
    path = folder / f"{role}.seed"
    try:
        seed = path.read_bytes().strip()
        nkeys.from_seed(seed)
    except OSError as error:
        raise ConfigError(
            f"no credential for {role}: {path} can't be read ({error.strerror}); "
            "`vigil up` or `vigil provision` makes it"
        ) from error
    except (nkeys.NkeysError, ValueError) as error:
        raise ConfigError(f"{path} holds no seed of an nkey: copy it whole ({error})") from error
    return seed


def keep_key(home: Path, provider: str, key: str) -> None:
    """Keep the key of a provider of models in the home."""
    write_private(file_of_provider(home, provider), f"{key}\n".encode())


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Of this call alone: another thread may write the same file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # it may hold a key
        raise
