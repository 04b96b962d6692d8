"""Secrets: in the configuration or in a file of their own; never in an error, a log or a `repr`.

A file's path may begin at the home. Surrounding blanks are no part of a secret, so an editor's last
line end does no harm.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import ConfigError, InvalidInput

PREFIX: Final = "whsec_"
PROVIDERS: Final = ("anthropic", "openai")
"""Of models, those that ask for a key."""
BYTES_MIN, BYTES_MAX = 24, 64
"""What the specification of Standard Webhooks asks for."""


class Secret(str):
    """A secret that only shows itself to whoever uses it as text.

    >>> Secret("hunter2"), f"{Secret('hunter2')}"
    (Secret(…), 'hunter2')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)"


def of_file(field: str, file: str, home: Path) -> Secret:
    """Return what a file holds.

    Args:
        field: the setting that names it, for the error.

    Raises:
        InvalidInput: it can't be read, or isn't text.
    """
    path = home / file
    try:
        path = home / Path(file).expanduser()
        text = path.read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(field, f"{path} can't be read: it is no text") from error
    except (OSError, ValueError, RuntimeError) as error:  # also: no path, or of a user unknown
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(field, f"{path} can't be read: {reason}") from error
    if "\0" in text:
        raise InvalidInput(field, f"{path} can't be used: it has a NUL character")
    return Secret(text)


def of_section(field: str, given: str, file: str, home: Path) -> Secret:
    """Return the secret of a section that has `field`, or `field` with ``_file``, but not both.

    Raises:
        InvalidInput: there is none, or two, or its file can't be read.
    """
    if given and file:
        raise InvalidInput(field, f"is given twice: leave it or {field}_file away")
    secret = of_file(f"{field}_file", file, home) if file else Secret(given)
    if not secret:
        raise InvalidInput(field, f"is missing: set it, or {field}_file")
    return secret


def of_environment(environ: Mapping[str, str], name: str) -> Secret | None:
    """Return the secret in a variable, or in the file that ``{name}_FILE`` names.

    Raises:
        ConfigError: the file can't be read.
    """
    if not (file := environ.get(f"{name}_FILE")):
        return Secret(environ.get(name, "")) or None
    try:
        return of_file(f"{name}_FILE", file, Path()) or None
    except InvalidInput as error:
        raise ConfigError(str(error)) from error


def is_key(text: str) -> bool:
    """Whether a text can be a key of a provider of models: nothing else is in it.

    >>> is_key("sk-ant-1"), is_key("sk ant"), is_key("")
    (True, False, False)
    """
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def file_of_provider(home: Path, provider: str) -> Path:
    """Return where a home keeps the key of a provider of models."""
    return home / "keys" / provider


def of_provider(environ: Mapping[str, str], home: Path, provider: str) -> Secret | None:
    """Return the key of a provider of models: of its variable, else as the home keeps it.

    Raises:
        ConfigError: a file can't be read.
    """
    found = of_environment(environ, f"{provider.upper()}_API_KEY")
    file = file_of_provider(home, provider)
    if found or not file.exists():
        return found
    try:
        return of_file("api_key", str(file), home) or None
    except InvalidInput as error:
        raise ConfigError(str(error)) from error


def check_standard(field: str, secret: str) -> None:
    """Refuse what is no secret of Standard Webhooks.

    Raises:
        InvalidInput: it has another form, or the wrong length.
    """
    try:
        if not secret.startswith(PREFIX):
            raise ValueError
        size = len(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(field, f"must be {PREFIX} and base64") from error
    if not BYTES_MIN <= size <= BYTES_MAX:
        raise InvalidInput(field, f"must have {BYTES_MIN} to {BYTES_MAX} bytes, has {size}")
