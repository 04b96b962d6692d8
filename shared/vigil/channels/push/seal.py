"""A push message as only one browser can read it: RFC 8291, on RFC 8188 with one record.

The browser gave a public key and a secret with its subscription; each message has a key of its own
beside them, so nothing that is kept here opens what was sent.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ...errors import InvalidInput

RECORD_BYTES: Final = 4096
"""What every push service takes (RFC 8030, 7.2)."""
TEXT_BYTES_MAX: Final = RECORD_BYTES - 86 - 17
"""Of one message: a record without its head, its tag and its last byte."""
AUTH_BYTES: Final = 16
POINT_BYTES: Final = 65
SALT_BYTES: Final = 16


def decoded(text: str) -> bytes:
    """Return the bytes of base64url without filling. Raises: InvalidInput."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("keys", "must be base64url") from error


def encoded(data: bytes) -> str:
    """Return bytes as base64url without filling.

    >>> encoded(b"\\xff\\xfe"), decoded("__4")
    ('__4', b'\\xff\\xfe')
    """
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def check_keys(p256dh: str, auth: str) -> None:
    """Refuse what are no keys of a browser. Raises: InvalidInput, naming the field."""
    _point_of(decoded(p256dh))
    if len(decoded(auth)) != AUTH_BYTES:
        raise InvalidInput("keys.auth", f"must be {AUTH_BYTES} bytes as base64url")


def _point_of(data: bytes) -> ec.EllipticCurvePublicKey:
    try:
        if len(data) != POINT_BYTES:
            raise ValueError
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput("keys.p256dh", "must be a point of P-256, uncompressed") from error


def sealed(
    text: bytes,
    p256dh: str,
    auth: str,
    *,
    own: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Return a message as the body of a request.

    Args:
        text: at most `TEXT_BYTES_MAX`.
        p256dh, auth: of the browser, as base64url.
        own, salt: the key and the salt of this message; None: made now, as ever but in tests.

    Raises:
        InvalidInput: the keys can't be used, or the text is too long.
    """
    if len(text) > TEXT_BYTES_MAX:
        raise InvalidInput("text", f"must have at most {TEXT_BYTES_MAX} bytes")
    check_keys(p256dh, auth)
    theirs, own = decoded(p256dh), own or ec.generate_private_key(ec.SECP256R1())
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    ours = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = own.exchange(ec.ECDH(), _point_of(theirs))
    secret = _derived(shared, decoded(auth), b"WebPush: info\0" + theirs + ours, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_BYTES.to_bytes(4) + bytes([len(ours)]) + ours
    return head + AESGCM(key).encrypt(nonce, text + b"\x02", None)


def _derived(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    return HKDF(hashes.SHA256(), size, salt, info).derive(secret)
