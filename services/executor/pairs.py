"""Files of pairs, one a line: what is secret and therefore neither in `vigil.toml` nor on a command
line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from vigil.errors import ConfigError, InvalidInput
from vigil.fields import secrets

FORMS: Final = {":": "Name: value", "=": "NAME=value"}


def read(field: str, home: Path, file: str, separator: str) -> dict[str, str]:
    """Return the pairs of a file; empty lines and those that begin with # are passed over.

    Args:
        field: whose file it is, for the error.
        file: its path, which may begin at `home`; empty: there is none.

    Raises:
        ConfigError: it can't be read, or a line is no pair. The line isn't quoted.
    """
    if not file:
        return {}
    try:
        lines = secrets.of_file(field, file, home).splitlines()
    except InvalidInput as error:
        raise ConfigError(str(error)) from error
    pairs = [line.partition(separator) for line in lines if line.strip() and line[:1] != "#"]
    if not all(found and name.strip() for name, found, _ in pairs):
        raise ConfigError(f"{field}: {file} must have one {FORMS[separator]!r} a line")
    return {name.strip(): value.strip() for name, _, value in pairs}
