"""Browsers that subscribed to notifications, and the push service that they have in common.

A browser here has its own keys, and opens what came as one does, by another library than ours; the
service is a receiver on loopback.
"""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC, datetime
from typing import Any

import http_ece
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.receiver import Receiver, Request
from vigil.bus.bus import Bus
from vigil.channels.push import subscriptions
from vigil.channels.push.subscriptions import Subscription


def channel_of(receiver: Receiver, **settings: Any) -> dict[str, Any]:
    """Configure the channel for browsers whose push service is `receiver`, with short pauses."""
    return {
        "kind": "push",
        "ports": [receiver.port],
        "allow_private": True,
        "timeout_s": 2.0,
        "attempts_max": 3,
        "backoff_base_s": 0.05,
        "backoff_cap_s": 0.2,
        **settings,
    }


class PushedBrowser:
    """One browser of somebody."""

    def __init__(self, receiver: Receiver, name: str = "one") -> None:
        self.receiver = receiver
        self.path = f"/push/{name}"
        self.endpoint = f"http://127.0.0.1:{receiver.port}{self.path}"
        self._own = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)

    @property
    def keys(self) -> dict[str, str]:
        """As it gives them to whoever may send to it."""
        return {"p256dh": point_of(self._own), "auth": plain(self._auth)}

    def subscription(self, user: str = "ann", **changes: Any) -> Subscription:
        """Return what is stored of it."""
        fields = {"name": "a browser", "at": datetime.now(UTC)} | self.keys | changes
        return Subscription(user=user, endpoint=self.endpoint, **fields)

    async def subscribe(self, bus: Bus, user: str = "ann", **changes: Any) -> Subscription:
        made = self.subscription(user, **changes)
        await subscriptions.store(bus, made)
        return made

    @property
    def requests(self) -> list[Request]:
        return [one for one in self.receiver.requests if one.target == self.path]

    def opened(self, request: Request) -> dict[str, Any]:
        """Return what a message says, which only this browser can read."""
        text = http_ece.decrypt(request.body, private_key=self._own, auth_secret=self._auth)
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What came, in order."""
        return [self.opened(one) for one in self.requests]


def signed_by(request: Request) -> tuple[str, dict[str, Any]]:
    """Return the public key that a request names, and what it signed.

    Raises:
        jwt.InvalidTokenError: the signature isn't good, or holds no more.
    """
    scheme, _, rest = request.headers["authorization"].partition(" ")
    assert scheme == "vapid"
    parts = dict(one.strip().split("=", 1) for one in rest.split(","))
    point = base64.urlsafe_b64decode(parts["k"] + "==")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    options = {"verify_aud": False}
    told: dict[str, Any] = jwt.decode(parts["t"], key, algorithms=["ES256"], options=options)
    return parts["k"], told


def point_of(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the public key of one."""
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return plain(point)


def plain(data: bytes) -> str:
    """Return base64url without filling."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
