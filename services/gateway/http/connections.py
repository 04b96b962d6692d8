"""Who holds the process's connections: strangers a bounded share, and each signed-in user theirs.

A connection is a stranger's until a request on it showed who sends it (a token, a ticket, a
signature). Strangers never keep anybody out: whoever comes is let in, and the one who has been a
stranger for longest goes, of the same address if that has too many. So somebody who signs in at
once always gets the time for it, also behind a proxy, where all come from one address.

It opens no socket and reads no clock.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from .problem import Problem, too_many, unavailable

SHARE: Final = 3 / 4
"""Of the files that the process may open: the rest is for everything else that it does."""
STRANGERS_SHARE: Final = 1 / 3
"""Of the connections."""
USER_SHARE: Final = 1 / 2
"""Of those of the signed-in: nobody can take all of them."""
GRACE_S: Final = 1.0
"""For a stranger of an address that has too many: many may come at once, after a restart."""
RETRY_S: Final = 5.0


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections there may be."""

    strangers_max: int
    of_address_max: int
    """Of strangers from one address, of those that had time to sign in."""
    known_max: int
    of_user_max: int


def bounds_of(connections_max: int, of_address_max: int, files_max: int) -> Bounds:
    """Return the bounds of a process that may open `files_max` files.

    Args:
        connections_max: in all; 0: as the files allow.

    >>> bounds_of(0, 200, 1024)
    Bounds(strangers_max=256, of_address_max=200, known_max=512, of_user_max=256)
    """
    share = max(3, int(files_max * SHARE))
    total = min(connections_max or share, share)
    strangers = max(1, int(total * STRANGERS_SHARE))
    known = max(2, total - strangers)
    return Bounds(
        strangers_max=strangers,
        of_address_max=min(of_address_max, strangers),
        known_max=known,
        of_user_max=max(1, int(known * USER_SHARE)),
    )


class HttpConnection:
    """One of them; `drop` ends it at once."""

    __slots__ = ("_all", "address", "drop", "is_open", "since_s", "user")

    def __init__(
        self, every: Connections, address: str, since_s: float, drop: Callable[[], None]
    ) -> None:
        self._all = every
        self.address = address
        self.since_s = since_s
        self.drop = drop
        self.user: str | None = None
        """Who sent the last request; None: nobody knows yet."""
        self.is_open = True

    def sign_in(self, user: str) -> None:
        """Note that the request on it is `user`'s.

        Raises:
            Problem: 429 they have too many that are in use, 503 all are.
        """
        self._all.sign_in(self, user)


class Connections:
    """All connections of the process. Dictionaries keep their order: the oldest is first."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._strangers: dict[HttpConnection, None] = {}
        self._of_address: dict[str, dict[HttpConnection, None]] = {}
        self._known: Counter[str] = Counter()
        self._idle: dict[HttpConnection, None] = {}
        """The signed-in between two requests, whoever was idle for longest first."""

    @property
    def strangers(self) -> int:
        """How many there are on which nobody has signed in."""
        return len(self._strangers)

    @property
    def known(self) -> int:
        """How many there are of the signed-in."""
        return self._known.total()

    def open(self, peer: str, now_s: float, drop: Callable[[], None]) -> HttpConnection:
        """Let one in from the IP address `peer`, and the oldest stranger go if that's too many."""
        connection = HttpConnection(self, network_of(peer), now_s, drop)
        self._add_stranger(connection)
        oldest = next(iter(self._of_address[connection.address]))
        if self._is_crowded(connection.address) and now_s - oldest.since_s >= GRACE_S:
            self._end(oldest)
        elif len(self._strangers) > self._bounds.strangers_max:
            self._end(next(iter(self._strangers)))
        return connection

    def sign_in(self, connection: HttpConnection, user: str) -> None:
        """See :meth:`HttpConnection.sign_in`."""
        if connection.user == user or not connection.is_open:
            return
        self._leave(connection)
        connection.user = user
        self._known[user] += 1
        if self._known[user] > self._bounds.of_user_max:
            self._make_room(connection, user)
        elif self.known > self._bounds.known_max:
            self._make_room(connection, None)

    def rest(self, connection: HttpConnection) -> None:
        """Note that it's between two requests: a signed-in one may be ended for another's sake."""
        if connection.user is not None:
            self._idle[connection] = None

    def work(self, connection: HttpConnection) -> None:
        """Note that a request began."""
        self._idle.pop(connection, None)

    def close(self, connection: HttpConnection) -> None:
        """Forget it: it ended. Harmless if it's forgotten already."""
        if connection.is_open:
            self._leave(connection)
            connection.is_open = False

    def _is_crowded(self, address: str) -> bool:
        return len(self._of_address[address]) > self._bounds.of_address_max

    def _make_room(self, newcomer: HttpConnection, user: str | None) -> None:
        """End one that is idle, of `user` if given. Raises: Problem, none is."""
        for other in self._idle:
            if user is None or other.user == user:
                self._end(other)
                return
        self._leave(newcomer)
        newcomer.user = None
        self._add_stranger(newcomer)
        raise _all_in_use(user)

    def _end(self, connection: HttpConnection) -> None:
        self.close(connection)
        connection.drop()

    def _add_stranger(self, connection: HttpConnection) -> None:
        self._strangers[connection] = None
        self._of_address.setdefault(connection.address, {})[connection] = None

    def _leave(self, connection: HttpConnection) -> None:
        self._idle.pop(connection, None)
        if connection.user is not None:
            self._known[connection.user] -= 1
            if not self._known[connection.user]:
                del self._known[connection.user]
            return
        self._strangers.pop(connection, None)
        group = self._of_address.get(connection.address, {})
        group.pop(connection, None)
        if not group:
            self._of_address.pop(connection.address, None)


def _all_in_use(user: str | None) -> Problem:
    if user is None:
        return unavailable("too many connections are open here")
    return too_many("you have too many connections open; end one first", RETRY_S)


def network_of(peer: str) -> str:
    """Return what counts as one address: of IPv6 the first 64 bits, which one customer has.

    >>> network_of("2001:db8::1") == network_of("2001:db8::2"), network_of("10.0.0.1")
    (True, '10.0.0.1')
    """
    if ":" not in peer:
        return peer
    address = ipaddress.IPv6Address(peer.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
