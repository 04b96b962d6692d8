"""Who sends a push message: the key of this home, and what it signs (VAPID, RFC 8292).

Browsers subscribe for this key alone, so it's made once, and kept with the home: with another one
each browser has to subscribe anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from ...errors import InvalidInput
from .seal import encoded

HOLDS: Final = timedelta(hours=12)
"""A signature; services take at most 24 hours."""
_KEPT_MAX: Final = 100


def file_of(home: Path) -> Path:
    """Return where the key is."""
    return home / "push.pem"


def key_of(home: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key of a home; the first who asks makes it, for its owner alone to read.

    Raises:
        InvalidInput: what is there can't be read, or is no such key.
    """
    file = file_of(home)
    try:
        if not file.exists():
            _make(file)
        found = load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no key"
        raise InvalidInput("key", f"{file} can't be used: {reason}") from error
    if not isinstance(found, ec.EllipticCurvePrivateKey) or found.curve.name != "secp256r1":
        raise InvalidInput("key", f"{file} can't be used: it is no key of P-256")
    return found


def _make(file: Path) -> None:
    """Write a new key, unless another process was faster: then theirs is the one."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = ec.generate_private_key(ec.SECP256R1())
    text = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)  # whole, or not at all, and never over another
    finally:
        draft.unlink()


def public_text(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the public key as browsers take it (`applicationServerKey`)."""
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return encoded(point)


class Vapid:
    """Signs for push services, one signature for each of them and half a day.

    Args:
        contact: whom a service may write to: `mailto:` or https; empty: nobody.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, contact: str) -> None:
        self._key = key
        self._contact = contact
        self._kept: dict[str, tuple[datetime, str]] = {}
        self.public = public_text(key)

    def header(self, endpoint: str, now: datetime) -> str:
        """Return the `Authorization` of a request to an endpoint."""
        parts = urlsplit(endpoint)
        origin = f"{parts.scheme}://{parts.netloc}"
        until, text = self._kept.get(origin, (now, ""))
        if until - now < HOLDS / 2:
            until = now + HOLDS
            text = f"vapid t={self._signed(origin, until)}, k={self.public}"
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            self._kept[origin] = (until, text)
        return text

    def _signed(self, origin: str, until: datetime) -> str:
        claims: dict[str, str | int] = {"aud": origin, "exp": int(until.timestamp())}
        if self._contact:
            claims["sub"] = self._contact
        parts = ({"typ": "JWT", "alg": "ES256"}, claims)
        signed = ".".join(encoded(json.dumps(one, separators=(",", ":")).encode()) for one in parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{encoded(r.to_bytes(32) + s.to_bytes(32))}"
