"""The one door to a paid call: reserved before it, settled after it (SPEC C-9, LOOPS L-21).

The accounts of a call's chain (:mod:`.accounts`) are entries of one bucket, a day's each. They
are changed together by one atomic batch with compare-and-set, so that all of a chain grant or
none does, whatever crashes, and any number of replicas share them. A replica remembers what it saw
last, so a change takes one exchange with the broker while nobody else writes, and one look more
when somebody did. What is unknown is counted: a crash between reserve and settle, and a write
whose answer was lost, leave their amount reserved until the day ends. So the count may be too
high, and is never too low as long as the estimate covers the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from vigil.bus.batches import TTL, Replacement, change_all
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.clock import Clock
from vigil.contracts import Usage
from vigil.contracts.costs import COSTS, Account, DayOfCosts
from vigil.errors import Unavailable, WrongLastSequence
from vigil.settings.models.caps import Caps
from vigil.settings.models.prices import Prices, cost_of, worst_cost_of
from vigil.subjects import token_of
from vigil.zones.day import Day

from ..core.draft.sight import media_tokens
from ..core.draft.tokens import tokens_of_bytes, tokens_of_text
from ..model import ModelAnswer, ModelRequest, ToolSpec
from ..notice import Notice
from ..row_counts import AROUND
from . import accounts
from .accounts import AGAIN_AFTER, LINKS, BudgetExceeded, chain_of
from .ledger import NOTHING, Amount, PaidCall, entered, is_plausible

ATTEMPTS_MAX: Final = 200
"""Lost races before it gives up; in each somebody wins, so only replicas' number counts."""
REMEMBERED_MAX: Final = 10_000
"""Entries whose last state a replica remembers; more are looked up."""
ACCOUNT_TTL: Final = "72h"
"""How long an account is kept; the sums of the ledger stay as long as the bucket says."""
SYSTEM: Final = ("instructions", "identity", "bulletin")
"""The blocks of a system prompt, in their order."""
SOURCES: Final = {"system": "summary", "tool": "results", "external": "outside"}
"""What a row of the history is called that isn't called by its source."""
TOOLS_COUNTED_MAX: Final = 64
_counted: Final[dict[int, tuple[tuple[ToolSpec, ...], int]]] = {}
"""By the identity of a tuple of tools: that, and its bytes."""
_T = TypeVar("_T", bound=msgspec.Struct)
_Rewrite = Callable[[tuple[bytes | None, ...]], Sequence[msgspec.Struct | None]]
"""None: that entry stays as it is."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a call can take, in tokens."""

    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """An amount set aside for a call, on the days of its accounts."""

    call: PaidCall
    at: datetime
    """When (UTC)."""
    amount: Amount
    notices: tuple[Notice, ...] = ()
    """Of caps that are nearly reached with it."""


class CallBudget:
    """The caps of an instance, whatever agents there are."""

    def __init__(
        self,
        bus: Bus,
        config: Caps,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        prices_of: Callable[[str], Prices],
        times: Callable[[str, str], int] = lambda _account, _day: 0,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        Args:
            prices_of: gives those of a model; empty: it has none.
            times: gives by how much an account was raised for a day.
            is_current: whether no other process runs with other caps: one that was changed is soon
                changed everywhere.
        """
        self._bus = bus
        self._bucket = KeyValue(bus, "BUDGETS")
        self._config = config
        self._clock = clock
        self._new_id = new_id
        self._prices_of = prices_of
        self._times = times
        self._is_current = is_current
        # Callers of one process queue here instead of losing races against each other.
        self._lock = asyncio.Lock()
        self._known: dict[str, tuple[bytes | None, int]] = {}
        self._account = Account()

    def seen(self) -> dict[str, float]:
        """Return the instance's tokens of the day as this replica saw them last."""
        account, limit = self._account, self._config.daily_tokens
        return {"used": account.used, "reserved": account.reserved, "limit": limit}

    async def reserve(self, call: PaidCall, most: Estimate) -> Reservation:
        """Set aside the most that a call can take; when this returns, it is counted.

        Raises:
            BudgetExceeded: it doesn't fit into what is left of the day.
            Unavailable: no answer from the broker; perhaps it is counted.
        """
        now = self._clock.now().astimezone(UTC)
        prices = self._prices_of(call.model)
        worst = worst_cost_of(prices, most.input_tokens, most.output_tokens, now.date())
        amount = Amount(tokens=most.tokens, micro_usd=worst)
        notices: tuple[Notice, ...] = ()

        def add(found: tuple[bytes | None, ...]) -> list[Account]:
            nonlocal notices
            before = [_read(value, Account) for value in found]
            grants = accounts.reserved(before, amount, self._config, call, now, self._times)
            notices = tuple(grant.notice for grant in grants if grant.notice)
            return [grant.account for grant in grants]

        try:
            await self._change(_chain(call, now), add)
        except BudgetExceeded as error:
            if self._is_current():
                raise
            raise BudgetExceeded(error.notice, now + AGAIN_AFTER) from error
        return Reservation(call=call, at=now, amount=amount, notices=notices)

    async def settle(self, reservation: Reservation, usage: Usage | None) -> int | None:
        """Count what the call really took, on the days of its reservation; return what it cost, in
        micro-USD, None: there is no price.

        Args:
            usage: as the provider told it; None: the call was refused and took nothing. What
                can't be true leaves the reservation counted.

        Raises:
            Unavailable: no answer from the broker; the reservation may stay counted.
        """
        call, at, was = reservation.call, reservation.at, reservation.amount
        if usage is not None and not is_plausible(usage):
            raise Unavailable(f"{usage.model} tells of tokens that can't be true: {usage}")
        used, keys, links = NOTHING, _chain(call, at), chain_of(call)
        if usage is not None:
            cost = cost_of(self._prices_of(call.model), usage, at.date())
            used = Amount(tokens=usage.tokens, micro_usd=cost)
            keys.append(f"{Day.at(at, call.zone)}.{COSTS}.{token_of(call.user)}")

        def exchange(found: tuple[bytes | None, ...]) -> list[msgspec.Struct | None]:
            changed: list[msgspec.Struct | None] = []
            is_erased = False
            for link, value in zip(links, found, strict=False):
                # What was there before the call, and is gone, was erased: it is not made again.
                is_gone = link.is_personal and value is None
                is_erased = is_erased or is_gone
                account = _read(value, Account)
                changed.append(None if is_gone else accounts.settled(account, was, used))
            if usage is not None:
                value = found[len(links)]
                costs = DayOfCosts(user=call.user) if value is None else _read(value, DayOfCosts)
                changed.append(None if is_erased else entered(costs, call, usage, used))
            return changed

        await self._change(keys, exchange)
        return used.micro_usd

    async def _change(self, keys: Sequence[str], rewrite: _Rewrite) -> None:
        """Rewrite entries together, once. An unknown outcome is raised: repeating could apply it
        twice."""
        async with self._lock:
            for _ in range(ATTEMPTS_MAX):
                found = await self._entries(keys)
                changed = rewrite(tuple(value for value, _ in found))
                written = [
                    (key, msgspec.json.encode(one), seen)
                    for key, one, (_, seen) in zip(keys, changed, found, strict=True)
                    if one is not None
                ]
                try:
                    batch = [_entry(*one) for one in written]
                    revisions = await change_all(self._bus, batch, batch_id=self._new_id())
                except WrongLastSequence:
                    self._forget(keys)
                    continue
                except BaseException:
                    self._forget(keys)
                    raise
                seen = zip((value for _, value, _ in written), revisions, strict=True)
                self._remember([key for key, _, _ in written], list(seen))
                self._see(keys, changed)
                return
        raise Unavailable(f"{keys[-1]}: lost {ATTEMPTS_MAX} races in a row")

    def _see(self, keys: Sequence[str], changed: Sequence[msgspec.Struct | None]) -> None:
        for key, one in zip(keys, changed, strict=True):
            if isinstance(one, Account) and key.endswith(f".{LINKS[-1].name}.all"):
                self._account = one

    async def _entries(self, keys: Sequence[str]) -> list[tuple[bytes | None, int]]:
        """Return each entry and its revision, as remembered or as the broker has it."""
        unknown = [key for key in keys if key not in self._known]
        entries = await asyncio.gather(*map(self._bucket.last, unknown))
        self._remember(unknown, entries)
        return [self._known[key] for key in keys]

    def _remember(self, keys: Sequence[str], entries: Sequence[tuple[bytes | None, int]]) -> None:
        if len(self._known) > REMEMBERED_MAX:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        self._known.update(zip(keys, entries, strict=True))

    def _forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._known.pop(key, None)


def _chain(call: PaidCall, at: datetime) -> list[str]:
    return [accounts.key_of(link, call, at) for link in chain_of(call)]


def _entry(key: str, value: bytes, revision: int) -> Replacement:
    headers = {} if f".{COSTS}." in key else {TTL: ACCOUNT_TTL}
    return Replacement(subject=f"$KV.BUDGETS.{key}", data=value, headers=headers, expect=revision)


def _read(value: bytes | None, kind: type[_T]) -> _T:
    if value is None:
        return kind()
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.MsgspecError as error:
        # Fail closed: without a count nothing may be spent.
        raise Unavailable(f"an entry of BUDGETS can't be read: {error}") from error


def estimate(request: ModelRequest) -> Estimate:
    """Return what to reserve for a call: a third of its bytes, what its files take, and the longest
    answer.

    See `core.draft.tokens` and `.sight` for why that is more than what most calls take.
    """
    rows = request.counted
    sent = rows.size + bytes_of_tools(request.tools)
    sent += sum(len(part.encode()) for part in (*request.system, request.present))
    tokens = tokens_of_bytes(sent) + media_tokens(rows.files)
    return Estimate(input_tokens=tokens, output_tokens=request.max_tokens)


def bytes_of_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Return how long tools are as JSON. Most requests have the very same ones: counted once."""
    found = _counted.get(id(tools))
    if found is None or found[0] is not tools:
        if len(_counted) >= TOOLS_COUNTED_MAX:
            _counted.clear()
        found = tools, len(msgspec.json.encode(tools)) if tools else 0
        _counted[id(tools)] = found
    return found[1]


def parts_of(request: ModelRequest) -> dict[str, int]:
    """Return the tokens of each part, in the order in which a model is shown them.

    `person`, `agent`, `results` and the like are rows of the history by their source; `files` is
    what attachments in them take.
    """
    parts: dict[str, int] = {"tools": tokens_of_bytes(bytes_of_tools(request.tools))}
    for name, text in zip(SYSTEM, request.system, strict=False):
        parts[name] = tokens_of_text(text)
    rows = request.counted
    for source, size in rows.sizes.items():
        parts[SOURCES.get(source, source)] = tokens_of_bytes(size + AROUND)
    parts["files"] = media_tokens(rows.files)
    parts["situation"] = tokens_of_text(request.present)
    return {name: tokens for name, tokens in parts.items() if tokens}


def with_parts(answer: ModelAnswer, request: ModelRequest) -> ModelAnswer:
    """Have an answer's usage tell what the model was shown."""
    used = msgspec.structs.replace(answer.usage, shown=parts_of(request))
    return msgspec.structs.replace(answer, usage=used)
