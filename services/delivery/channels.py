"""The channels of the configuration, ready to be used; refuses what can't work."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from vigil.clock import Clock
from vigil.contracts import SOCKET
from vigil.errors import ConfigError, InvalidInput
from vigil.net import ssrf
from vigil.settings import sections

from .answers import Answer
from .config import Limits
from .dispatch import Terms
from .webhook import WebhookChannel

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix, not a secret
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64
"""What the specification of Standard Webhooks asks for."""


class Sender(Protocol):
    """How one kind of channel hands a message over."""

    async def send(self, webhook_id: str, body: bytes) -> Answer:
        """Try once; never raises but when cancelled."""
        ...

    async def close(self) -> None: ...


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A way out, and on what terms."""

    terms: Terms
    sender: Sender


def build(
    channels: Mapping[str, sections.Channel],
    clock: Clock,
    limits: Limits,
    *,
    home: Path,
    ports_never: Collection[int] = (),
) -> dict[str, Channel]:
    """Make every channel of the configuration.

    Args:
        home: where the path of a secret's file begins, unless it's absolute.
        ports_never: the broker's.

    Raises:
        ConfigError: with every mistake, one a line.
    """
    # Below a warning the HTTP client tells whole URLs.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    built: dict[str, Channel] = {}
    problems: list[str] = []
    for name, one in channels.items():
        if name == SOCKET:
            problems.append(f"channels.{name}: this name is taken: it is the transcript itself")
            continue
        try:
            built[name] = _channel(one, clock, limits, home, ports_never)
        except InvalidInput as error:
            problems.append(f"channels.{name}.{error.field}: {error.reason}")
    if problems:
        raise ConfigError("\n".join(problems))
    return built


def _channel(
    one: sections.Channel, clock: Clock, limits: Limits, home: Path, ports_never: Collection[int]
) -> Channel:
    rules = ssrf.Rules(ports=one.ports, ports_never=ports_never, allow_private=one.allow_private)
    ssrf.target_of(one.url, rules)
    secret = secret_of(one, home)
    sender = WebhookChannel(one.url, secret, rules, clock, timeout_s=one.timeout_s)
    terms = Terms(
        is_idempotent=one.is_idempotent,
        attempts_max=one.attempts_max,
        backoff_base_s=one.backoff_base_s,
        backoff_cap_s=one.backoff_cap_s,
        patience_s=one.timeout_s + limits.attempt_grace_s,
    )
    return Channel(terms=terms, sender=sender)


def secret_of(one: sections.Channel, home: Path) -> str:
    """Return the secret that signs what goes over a channel.

    Raises:
        InvalidInput: there is none, or two, or it has another form, or its file can't be read.
    """
    if one.secret and one.secret_file:
        raise InvalidInput("secret", "is given twice: leave it or secret_file away")
    if one.secret_file:
        return check_secret("secret_file", _read(home / Path(one.secret_file).expanduser()))
    if not one.secret:
        raise InvalidInput("secret", "is missing: whsec_ and some base64, or secret_file")
    return check_secret("secret", one.secret)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise InvalidInput("secret_file", f"{path}: {reason}") from error


def check_secret(field: str, text: str) -> str:
    """Return `text` if it's a secret of Standard Webhooks; it's never part of an error.

    >>> check_secret("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")[:6]
    'whsec_'

    Raises:
        InvalidInput: it has another form, or the wrong length.
    """
    if not text.startswith(SECRET_PREFIX):
        raise InvalidInput(field, f"must begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(field, f"must be base64 after {SECRET_PREFIX}") from error
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        reason = f"must stand for {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, has {len(key)}"
        raise InvalidInput(field, reason)
    return text
