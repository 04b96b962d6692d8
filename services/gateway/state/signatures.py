"""Whether a webhook was signed by who we think, as Standard Webhooks, GitHub or Stripe do it. Pure.

A signature is checked against every active secret and in constant time, over the bytes as they
came. What fails tells nothing but that it failed: whoever probes must not learn how far they got.
The library makes the signatures; the window is checked here, against the clock that is given.

Sources: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md,
https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
and https://docs.stripe.com/webhooks#verify-manually
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from standardwebhooks import Webhook

from vigil.errors import InvalidInput
from vigil.fields.secrets import check_standard

Scheme = Literal["standard", "github", "stripe"]
TOLERANCE_S: Final = 5 * 60
ID_LENGTH_MAX: Final = 256
SIGNATURES_MAX: Final = 16
"""Of one request: more than anybody has secrets."""
SECRET_LENGTH_MIN: Final = 16
"""What GitHub's and Stripe's have at least, which are taken as they are."""
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_VISIBLE: Final = re.compile(r"[!-~]+", re.ASCII)


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """What a valid request says of itself. With GitHub only the body is signed, not these."""

    id: str
    kind: str = ""


def check_secret(scheme: Scheme, secret: str) -> None:
    """Refuse a secret of another form; the error doesn't contain it. Raises: InvalidInput."""
    if scheme == "standard":
        check_standard("secrets", secret)
    elif len(secret) < SECRET_LENGTH_MIN or not _VISIBLE.fullmatch(secret):
        reason = f"must have at least {SECRET_LENGTH_MIN} visible ASCII characters each"
        raise InvalidInput("secrets", reason)


def verify(
    scheme: Scheme,
    secrets: Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> Signed | None:
    """Return what the request says of itself, or None if no secret signed it.

    Args:
        headers: names in lower case; one that came twice must be left out.
        now: aware UTC.
    """
    check = {"standard": _standard, "github": _github, "stripe": _stripe}[scheme]
    return check(secrets, headers, body, now)


def _standard(
    secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> Signed | None:
    name = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not _is_name(name) or not _is_present(timestamp, now):
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    at = datetime.fromtimestamp(int(timestamp), UTC)
    given = headers.get("webhook-signature", "").split(" ")[:SIGNATURES_MAX]
    expected = [Webhook(secret).sign(name, at, text) for secret in secrets]
    return Signed(id=name) if _is_any_equal(expected, given) else None


def _github(
    secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> Signed | None:
    name, kind = (headers.get(f"x-github-{part}", "") for part in ("delivery", "event"))
    if not _is_name(name) or not _is_name(kind):
        return None
    made = (hmac.new(secret.encode(), body, hashlib.sha256) for secret in secrets)
    expected = [f"sha256={one.hexdigest()}" for one in made]
    given = [headers.get("x-hub-signature-256", "")]
    return Signed(id=name, kind=kind) if _is_any_equal(expected, given) else None


class _Called(msgspec.Struct):
    """What an event of Stripe's is called."""

    id: str = ""


def _stripe(
    secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> Signed | None:
    parts = [one.strip().partition("=") for one in headers.get("stripe-signature", "").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not _is_present(times[0], now):
        return None
    signed = f"{times[0]}.".encode() + body
    made = (hmac.new(secret.encode(), signed, hashlib.sha256) for secret in secrets)
    expected = [one.hexdigest() for one in made]
    given = [value for name, _, value in parts if name == "v1"][:SIGNATURES_MAX]
    if not _is_any_equal(expected, given):
        return None
    called = _Called()
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        called = msgspec.json.decode(body, type=_Called)
    # A repeat has the same body, so what has no name is known by that.
    return Signed(id=called.id if _is_name(called.id) else hashlib.sha256(body).hexdigest())


def _is_present(timestamp: str, now: datetime) -> bool:
    """Return whether a time in seconds since 1970 is about now."""
    if not _TIMESTAMP.fullmatch(timestamp):
        return False
    return abs(now.timestamp() - int(timestamp)) <= TOLERANCE_S


def _is_name(value: str) -> bool:
    return len(value) <= ID_LENGTH_MAX and _VISIBLE.fullmatch(value) is not None


def _is_any_equal(expected: Iterable[str], given: Iterable[str]) -> bool:
    """Compare each with each; how long it takes doesn't tell which, or how much of it."""
    found = False
    signatures = [one.encode("utf-8", "surrogateescape") for one in given]
    for one in expected:
        for signature in signatures:
            found |= hmac.compare_digest(one.encode(), signature)
    return found
