"""The accounts that a paid call is counted in, and what fits into them (LOOPS L-21). Pure.

A call has a chain of accounts: the instance, its agent, its owner, its cause, what that came from.
The chain is the table `LINKS`: a new kind of cause is one more row. Each account has a cap per day
in tokens and one in USD: a share of the instance's, an amount, or the lesser of both. What is
reserved counts as spent.

A person's have the days of their zone, those that others share UTC's; a date has one, whatever
zones it was lived in (ADR 29).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Final, Literal, NamedTuple

import msgspec

from vigil.contracts.costs import Account, RaiseOffer
from vigil.errors import VigilError
from vigil.settings.models import raises
from vigil.settings.models.caps import Caps
from vigil.subjects import token_of
from vigil.teams import TEAM
from vigil.zones.day import Day

from ..notice import Notice
from .ledger import Amount, PaidCall, tokens, usd

WARNED_AT: Final = 0.8
"""Share of a cap from which on it is warned of, once a day."""
AGAIN_AFTER: Final = timedelta(minutes=10)
"""So soon is it tried again where only what others have set aside, or a cap that is being changed,
is in the way."""
MICRO: Final = 1_000_000
Times = Callable[[str, str], int]
"""By how much an account was raised for a day (`vigil.settings.models.raises`)."""


class BudgetExceeded(VigilError):
    """No more may be spent now; `again_at` is when it is worth another try."""

    def __init__(self, notice: Notice, again_at: datetime) -> None:
        super().__init__(notice.text)
        self.notice = notice
        self.again_at = again_at


class AccountLimits(NamedTuple):
    """What the configuration allows an account: the least of them holds."""

    share: float
    """Of the instance's caps."""
    tokens: int | None = None
    usd: float | None = None
    setting: str = ""
    """What raises `tokens`, if no setting does."""


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the chain: which account, and what it may use."""

    name: str
    per: str
    """How its settings end; empty: those of the instance."""
    whose: str
    """In words, as messages say it."""
    account: Callable[[PaidCall], str]
    """What distinguishes it from others of its kind: tokens of a key. Empty: the call has none."""
    limits: Callable[[Caps, PaidCall], AccountLimits]
    is_personal: bool = True
    """Whether it is erased with its person, and has the days of their zone."""
    is_kept: bool = False
    """Whether a part of it is kept for what people say themselves (`Caps.share_unattended`)."""


def _session(call: PaidCall, thread: str) -> str:
    return f"{token_of(call.user)}.{token_of(call.agent, thread)}" if thread else ""


def _root(call: PaidCall) -> str:
    """Return the first of those that started it, if that has no account of the chain yet."""
    return _session(call, "" if call.root in (call.cause, call.starter) else call.root)


def _of_session(caps: Caps, _: PaidCall) -> AccountLimits:
    tokens, usd = caps.daily_tokens_per_session, caps.daily_usd_per_session
    return AccountLimits(caps.share_per_session, tokens, usd)


def _of_row(caps: Caps, call: PaidCall) -> AccountLimits:
    """Return the lesser of what the row has of its own and what the settings allow each."""
    tokens, usd = caps.daily_tokens_per_row, caps.daily_usd_per_row
    if not call.row_tokens or (tokens is not None and tokens <= call.row_tokens):
        return AccountLimits(1.0, tokens, usd)
    return AccountLimits(1.0, call.row_tokens, usd, setting="`vigil cron edit --tokens`")


LINKS: Final = (
    ChainLink(
        name="cause",
        per="session",
        whose=" for one session",
        account=lambda call: _session(call, call.cause),
        limits=_of_session,
    ),
    ChainLink(
        name="cause",
        per="session",
        whose=" for one session and what it starts",
        account=lambda call: _session(call, call.starter),
        limits=_of_session,
    ),
    ChainLink(
        name="cause",
        per="session",
        whose=" for one session and all that comes of it",
        account=_root,
        limits=_of_session,
    ),
    ChainLink(
        name="goal",
        per="goal",
        whose=" for one goal",
        account=lambda call: _session(call, call.goal),
        limits=lambda caps, _: AccountLimits(
            1.0, caps.daily_tokens_per_goal, caps.daily_usd_per_goal
        ),
    ),
    ChainLink(
        name="row",
        per="row",
        whose=" for one row of the timetable",
        account=lambda call: _session(call, call.row),
        limits=_of_row,
    ),
    ChainLink(
        name="owner",
        is_kept=True,
        per="user",
        whose=" for one person",
        account=lambda call: token_of(call.user),
        limits=lambda caps, _: AccountLimits(
            caps.share_per_user, caps.daily_tokens_per_user, caps.daily_usd_per_user
        ),
    ),
    ChainLink(
        name="agent",
        is_kept=True,
        per="agent",
        whose=" for one agent",
        account=lambda call: call.agent,
        limits=lambda caps, _: AccountLimits(
            caps.share_per_agent, caps.daily_tokens_per_agent, caps.daily_usd_per_agent
        ),
        is_personal=False,
    ),
    ChainLink(
        name="instance",
        is_kept=True,
        per="",
        whose="",
        account=lambda _: "all",
        limits=lambda _, __: AccountLimits(1.0),
        is_personal=False,
    ),
)
"""The narrowest first: who is over theirs is told so, whatever the others hold."""


def chain_of(call: PaidCall) -> tuple[ChainLink, ...]:
    """Return the links that a call has an account in.

    >>> [link.name for link in chain_of(PaidCall(user="a", agent="v", cause="t", model="m"))]
    ['cause', 'owner', 'agent', 'instance']
    """
    return tuple(link for link in LINKS if link.account(call))


class Granted(msgspec.Struct, frozen=True):
    """An account with an amount set aside in it."""

    account: Account
    notice: Notice | None = None
    """What to tell, if a cap of it is nearly reached."""


def day_of(link: ChainLink, call: PaidCall, now: datetime) -> Day:
    """Return the day that an account of a call is of."""
    return Day.at(now, call.zone if link.is_personal else "UTC")


def name_of(link: ChainLink, call: PaidCall) -> str:
    """Return how an account is called on any day (`vigil.settings.models.raises`)."""
    return f"{link.name}.{link.account(call)}"


def key_of(link: ChainLink, call: PaidCall, now: datetime) -> str:
    """Return where an account is kept.

    >>> call = PaidCall(user="ann", agent="vigil", cause="t1", model="m", zone="Asia/Tokyo")
    >>> now = datetime.fromisoformat("2026-11-23T18:00:00Z")
    >>> key_of(LINKS[-1], call, now), key_of(LINKS[0], call, now)[:17]
    ('2026-11-23.instance.all', '2026-11-24.cause.')
    """
    return f"{day_of(link, call, now)}.{name_of(link, call)}"


def reserved(
    accounts: Sequence[Account],
    amount: Amount,
    budget: Caps,
    call: PaidCall,
    now: datetime,
    times: Times = lambda _account, _day: 0,
) -> tuple[Granted, ...]:
    """Set an amount aside in the accounts of a chain (as `chain_of`): in all or in none.

    Args:
        now: in UTC.
        times: by how much each was raised for its day.

    Raises:
        BudgetExceeded: it doesn't fit into one of them, or has no price and a cap in USD holds.
    """
    links = chain_of(call)
    if amount.micro_usd is None:
        _check_unpriced(links, budget, call, now)
    chain = zip(links, accounts, strict=True)
    return tuple(
        _granted(link, account, amount, _capped(link, budget, call, times, now), now)
        for link, account in chain
    )


def _check_unpriced(
    links: Sequence[ChainLink], budget: Caps, call: PaidCall, now: datetime
) -> None:
    caps = [_cap_of(link, budget, call, "usd") for link in reversed(links)]
    setting = next((cap.setting for cap in caps if cap.most != inf), "")
    if setting:
        reason = (
            f"{call.model} has no price for today, and {setting} allows only what has one: "
            f"models.{call.model}.prices sets it"
        )
        day = Day.at(now)
        notice = Notice(id=token_of(str(day), "price", call.model), text=reason)
        raise BudgetExceeded(notice, day.ends_at)


class Cap(NamedTuple):
    """The most that an account may hold, in tokens or micro-USD, and what raises it."""

    most: float
    setting: str


def _cap_of(link: ChainLink, budget: Caps, call: PaidCall, kind: Literal["tokens", "usd"]) -> Cap:
    limits, whole = link.limits(budget, call), f"budget.daily_{kind}"
    own: float | None = limits.tokens
    part = float(int(budget.daily_tokens * limits.share))
    if kind == "usd":
        own = None if limits.usd is None else limits.usd * MICRO
        part = budget.daily_usd * limits.share * MICRO
    if not link.per:
        return Cap(part, whole)
    if own is not None and (limits.share == 1 or own <= part):
        setting = limits.setting if kind == "tokens" else ""
        return Cap(own, setting or f"{whole}_per_{link.per}")
    # Else what it may use is the instance's, which has an account of its own.
    return Cap(part if limits.share < 1 else inf, f"{whole} or budget.share_per_{link.per}")


class Capped(NamedTuple):
    """What holds for an account on a day."""

    call: PaidCall
    day: Day
    tokens: Cap
    usd: Cap
    share_alone: float
    """Of the caps, what is for what no person's words began: some of what is a person's in the end
    is kept for those."""
    times: int
    next_times: int | None
    """What the next raise makes of `times`; None: there is none."""
    growth: float = 1.0
    """By how much that raise multiplies the caps."""


def _capped(link: ChainLink, budget: Caps, call: PaidCall, times: Times, at: datetime) -> Capped:
    tokens, money = _cap_of(link, budget, call, "tokens"), _cap_of(link, budget, call, "usd")
    day = day_of(link, call, at)
    if not link.is_kept:
        return Capped(call, day, tokens, money, 1.0, 0, None)
    now = times(name_of(link, call), str(day))
    by, following = raises.factor(now, budget.raise_max), raises.next_times(now, budget.raise_max)
    growth = 1.0 if following is None else raises.factor(following, budget.raise_max) / by
    tokens, money = tokens._replace(most=tokens.most * by), money._replace(most=money.most * by)
    return Capped(call, day, tokens, money, budget.share_unattended, now, following, growth)


def _granted(
    link: ChainLink, account: Account, amount: Amount, capped: Capped, now: datetime
) -> Granted:
    call, day = capped.call, capped.day
    micro_usd = amount.micro_usd or 0
    changed = msgspec.structs.replace(
        account,
        reserved=account.reserved + amount.tokens,
        reserved_micro_usd=account.reserved_micro_usd + micro_usd,
    )
    key, used, way = f"{day}.{name_of(link, call)}", 0.0, WayToRaise("")
    if capped.times:
        key = f"{key}.raised-{capped.times}"
    for cap, held, spent, needed, shown in (
        (capped.tokens, account.reserved, account.used, amount.tokens, tokens),
        (capped.usd, account.reserved_micro_usd, account.used_micro_usd, micro_usd, usd),
    ):
        whole = held + spent + needed
        most = cap.most if call.is_attended else cap.most * capped.share_alone
        if whole > most or cap.most == 0:
            what = f"the daily limit of {shown(cap.most)}{link.whose} is reached"
            if most < cap.most:
                part = f"{shown(most)} of the daily limit{link.whose}"
                what = f"no more than {part} are for what nobody said, so that you are answered"
            reason = (
                f"{what} ({shown(held + spent)} used or reserved, {shown(needed)} needed); "
                f"it resets at 00:00 {day.zone}, and "
            )
            again_at = _again_at(day, now, is_held=0 < spent + needed <= most)
            level = "stopped" if most == cap.most else "kept"
            way = _way_of(link, capped, cap, shown)
            raise BudgetExceeded(_notice(key, level, reason, way), again_at)
        if whole / cap.most > used:
            used, way = whole / cap.most, _way_of(link, capped, cap, shown)
    if used < WARNED_AT:
        return Granted(changed)
    # Each later call of whoever was first says so again, since this one's turn may be lost; their
    # home stores it once.
    caller = token_of(call.user, call.agent)
    changed = msgspec.structs.replace(changed, warned=account.warned or caller)
    text = f"{used:.0%} of the daily limit{link.whose} is used; at 100 % model calls stop. "
    return Granted(changed, _notice(key, "warned", text, way) if changed.warned == caller else None)


class WayToRaise(NamedTuple):
    """How a cap is raised."""

    text: str
    offer: RaiseOffer | None = None


def _way_of(link: ChainLink, capped: Capped, cap: Cap, shown: Callable[[float], str]) -> WayToRaise:
    """Return it as told: a setting, and for today the person's word, or an admin's command."""
    text, call = f"{cap.setting} raises it", capped.call
    if capped.next_times is None or cap.most == 0:
        return WayToRaise(text)
    if link.name != "owner":
        which = f"--agent {call.agent}" if link.name == "agent" else "--all"
        return WayToRaise(f"{text}; for today an admin's `vigil budget raise {which}` does")
    if call.user == TEAM:
        return WayToRaise(text)
    most = shown(cap.most * capped.growth)
    day = capped.day
    offer = RaiseOffer(day=str(day), ends_at=day.ends_at, times=capped.next_times, most=most)
    return WayToRaise(f"{text}; {offer.words}", offer)


def _notice(account: str, what: str, text: str, way: WayToRaise) -> Notice:
    return Notice(id=token_of(account, what), text=text + way.text, offer=way.offer)


def _again_at(day: Day, now: datetime, *, is_held: bool) -> datetime:
    """Return when to try again. `is_held`: what others set aside may be given back before."""
    return min(now + AGAIN_AFTER, day.ends_at) if is_held else day.ends_at


def settled(account: Account, was: Amount, used: Amount) -> Account:
    """Exchange what was set aside for what was used.

    >>> settled(Account(reserved=70, used=5), Amount(tokens=70), Amount(tokens=50)).used
    55
    """
    return msgspec.structs.replace(
        account,
        reserved=max(account.reserved - was.tokens, 0),
        used=account.used + used.tokens,
        reserved_micro_usd=max(account.reserved_micro_usd - (was.micro_usd or 0), 0),
        used_micro_usd=account.used_micro_usd + (used.micro_usd or 0),
    )
