"""What ways in without a token share: who proves nothing is slowed down, who does has a rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..door import sign_in
from ..http.problem import too_many
from ..state.edge import Edge


def single(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return the headers that came once: of two signatures or ids neither may be picked."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    counts = Counter(name for name, _ in pairs)
    return {name: value for name, value in pairs if counts[name] == 1}


def note_failure(edge: Edge, client: Any) -> str:
    """Count a request that proved nothing -> its address. Raises: Problem, 429: one of many."""
    address: str = client[0] if client else ""
    if wait_s := edge.failures.take(address, edge.clock.monotonic()):
        raise too_many("too many requests with bad signatures", wait_s)
    return address


def let_in(edge: Edge, scope: Any, place: str, what: str) -> None:
    """Let in who proved that `place` is theirs. Raises: Problem, 429 or 503: too many do."""
    sign_in(scope, place)
    if wait_s := edge.limiter.take(place, edge.clock.monotonic()):
        raise too_many(f"this {what} gets too many requests", wait_s)
