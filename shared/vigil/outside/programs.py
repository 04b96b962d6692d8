"""What a program outside of Vigil may do on the bus, as data (SPEC P-7).

Each outside credential is an account of its own on the broker. A permission alone would not hold
it: the broker never checks the reply subject of a request, so whoever shares an account with the
streams can have the broker's own answers, and whatever they may pull, stored under any subject
(measured; docs/adr/0014). In an account of its own there is nothing to answer into but the
program's inboxes. What it may reach in ours is imported, subject by subject; what it may publish
and subscribe in its own is an allow-list as for a service. It may create no consumer.

    publishes    event.{user}.{name}                  stored, then taken in by the gateway
                 $JS.vigil.API.CONSUMER.…             pulls from its durable consumer of signals
                 $JS.ACK.SIGNALS.{consumer}.>
    subscribes   _INBOX_{consumer}.>                  answers
                 signal.*.{user}.>                    signals as they happen (an admin: of all)

Clients reach the JetStream API of ours with the domain :data:`DOMAIN`, which every official
client takes as an option. Pure: the files of credentials are in :mod:`vigil.settings.credentials`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from ..subjects import OUTSIDE_ALL, SIGNALS_ALL, check_part, outside, signals_of, token_of
from ..topology import Consumer

ACCOUNT: Final = "VIGIL"
"""Ours: the services and the streams."""
DOMAIN: Final = "vigil"
STREAM: Final = "SIGNALS"
ACK_WAIT_S: Final = 30.0

_API: Final = "$JS.API"
_PULL: Final = "CONSUMER.MSG.NEXT"
_INFO: Final = "CONSUMER.INFO"


class Outside(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A credential of an outside program that speaks for `user`; `name` tells them apart."""

    user: str
    name: str
    public_key: str
    is_admin: bool = False
    """May follow everybody's signals. It publishes for `user` only."""
    since: datetime | None = None
    """When the signals begin that its consumer has; None: when it is made."""

    def __post_init__(self) -> None:
        check_part("user", self.user)
        check_part("name", self.name)

    @property
    def id(self) -> str:
        """For people: ``ann.ci``."""
        return f"{self.user}.{self.name}"

    @property
    def events(self) -> str:
        """The one subject that it may publish events to."""
        return outside(self.user, self.name)

    @property
    def signals(self) -> str:
        """The filter of the signals that it may see."""
        return SIGNALS_ALL if self.is_admin else signals_of(self.user)

    @property
    def consumer(self) -> Consumer:
        """Its durable consumer, by which it misses no signal while it's away."""
        name = f"out-{token_of('outside', self.user, self.name)}"
        return Consumer(stream=STREAM, name=name, filters=(self.signals,), ack_wait_s=ACK_WAIT_S)

    @property
    def inbox(self) -> str:
        """The prefix of its inboxes."""
        return f"_INBOX_{self.consumer.name}"

    @property
    def account(self) -> str:
        return f"OUT_{self.consumer.name.removeprefix('out-')}"


def permissions(credential: Outside) -> dict[str, list[str]]:
    """Return {"publish": [...], "subscribe": [...]} of a credential, in its own account."""
    where = f"{STREAM}.{credential.consumer.name}"
    return {
        "publish": [
            credential.events,
            f"$JS.{DOMAIN}.API.{_PULL}.{where}",
            f"$JS.{DOMAIN}.API.{_INFO}.{where}",
            f"$JS.ACK.{where}.>",
        ],
        "subscribe": [f"{credential.inbox}.>", credential.signals],
    }


EXPORTS: Final[tuple[dict[str, Any], ...]] = (
    {"service": OUTSIDE_ALL},
    {"service": f"{_API}.{_PULL}.{STREAM}.*", "response_type": "stream"},
    {"service": f"{_API}.{_INFO}.{STREAM}.*"},
    {"service": f"$JS.ACK.{STREAM}.*.>"},
    {"stream": SIGNALS_ALL},
)
"""What our account offers to those of outside programs. Only this configuration can import it, and
the list is the same whoever there is, so that a new credential changes nothing for the services."""


def _imports(credential: Outside) -> list[dict[str, Any]]:
    where = f"{STREAM}.{credential.consumer.name}"
    services: list[tuple[str, str]] = [(credential.events, ""), (f"$JS.ACK.{where}.>", "")]
    services += [
        (f"{_API}.{verb}.{where}", f"$JS.{DOMAIN}.API.{verb}.{where}") for verb in (_PULL, _INFO)
    ]
    imports: list[dict[str, Any]] = [
        {"service": {"account": ACCOUNT, "subject": subject}} | ({"to": to} if to else {})
        for subject, to in services
    ]
    return [*imports, {"stream": {"account": ACCOUNT, "subject": credential.signals}}]


def accounts(
    users: list[dict[str, Any]], credentials: Iterable[Outside]
) -> Mapping[str, dict[str, Any]]:
    """Return the broker's accounts: ours with `users`, and one for each outside credential."""
    ours = {"jetstream": "enabled", "users": users, "exports": list(EXPORTS)}
    return {ACCOUNT: ours} | {one.account: _account(one) for one in sorted(credentials)}


def _account(credential: Outside) -> dict[str, Any]:
    allowed = permissions(credential)
    user = {
        "nkey": credential.public_key,
        "permissions": {
            "publish": {"allow": allowed["publish"]},
            "subscribe": {"allow": allowed["subscribe"]},
        },
    }
    return {"users": [user], "imports": _imports(credential)}
