"""The chain of accounts (LOOPS L-21): all grant or none, which cap is named, who is warned once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.thought.accounts import (
    BudgetExceeded,
    chain_of,
    key_of,
    reserved,
    settled,
)
from services.cortex.thought.ledger import ROWS_MAX, Amount, PaidCall, entered, is_plausible
from vigil.contracts import Cause, Loop, Start, State, Usage
from vigil.contracts.costs import OTHER, Account, DayOfCosts, RaiseOffer
from vigil.settings.models.caps import Caps
from vigil.subjects import SessionKey, token_of
from vigil.teams import TEAM

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
DAY = NOW.date()
ANN = PaidCall(user="ann", agent="vigil", cause="t1", model="m")
FRESH = tuple(Account() for _ in chain_of(ANN))
_amounts = st.builds(Amount, tokens=st.integers(0, 400), micro_usd=st.integers(0, 400))
_shares = st.sampled_from([0.1, 0.5, 0.9, 1.0])


def reserve(amount: Amount, accounts: tuple[Account, ...] = FRESH, **config: Any) -> list[Account]:
    return [one.account for one in reserved(accounts, amount, Caps(**config), ANN, NOW)]


@given(st.lists(st.tuples(_amounts, st.booleans(), st.booleans())), _shares, _shares, _shares)
def test_no_account_ever_holds_more_than_its_cap(
    calls: list[tuple[Amount, bool, bool]], user: float, session: float, alone: float
) -> None:
    """Nor is more than a part of it granted to what nobody said."""
    budget = Caps(
        daily_tokens=1000, daily_usd=0.001, share_per_user=user, share_per_session=session,
        share_unattended=alone,
    )  # fmt: skip
    accounts = FRESH
    for amount, is_settled, is_attended in calls:
        call = msgspec.structs.replace(ANN, is_attended=is_attended)
        try:
            granted = reserved(accounts, amount, budget, call, NOW)
        except BudgetExceeded:
            continue
        kept = [] if is_attended else [one.account for one in granted[1:]]
        parts = [link.limits(budget, ANN).share * alone for link in chain_of(ANN)[1:]]
        assert all(o.reserved + o.used <= 1000 * p for o, p in zip(kept, parts, strict=False))
        accounts = tuple(one.account for one in granted)
        if is_settled:
            used = Amount(tokens=amount.tokens // 2, micro_usd=(amount.micro_usd or 0) // 2)
            accounts = tuple(settled(one, amount, used) for one in accounts)
        for link, account in zip(chain_of(ANN), accounts, strict=True):
            share = link.limits(budget, ANN).share
            assert account.reserved + account.used <= 1000 * share
            assert account.reserved_micro_usd + account.used_micro_usd <= 1000 * share
            assert account.reserved >= 0 <= account.reserved_micro_usd


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, r"1000 tokens is reached \(0 tokens used or reserved, 1001 tokens needed\)"),
        ({"share_per_user": 0.5}, "500 tokens for one person.*or budget.share_per_user raises it"),
        ({"share_per_agent": 0.5}, "500 tokens for one agent.*budget.share_per_agent"),
        ({"share_per_session": 0.5}, "500 tokens for one session.*budget.share_per_session"),
        (
            {"daily_tokens": 2000, "daily_usd": 1.5},
            r"1\.5000 USD is reached \(0\.0000 USD used or reserved, 2\.0000 USD needed\)",
        ),
    ],
)
def test_a_refusal_says_which_cap_when_it_ends_and_what_raises_it(
    config: dict[str, Any], words: str
) -> None:
    config = {"daily_tokens": 1000, "share_per_user": 1.0} | config
    with pytest.raises(BudgetExceeded, match=words) as caught:
        reserve(Amount(tokens=1001, micro_usd=2_000_000), **config)
    assert "it resets at 00:00 UTC, and budget.daily_" in str(caught.value)
    assert caught.value.again_at.isoformat() == "2026-11-24T00:00:00+00:00"


@pytest.mark.parametrize(
    ("account", "is_soon"),
    [
        (Account(reserved=900), True),
        (Account(used=500, reserved=400), True),
        (Account(used=801, reserved=99), False),
        (Account(used=900), False),
    ],
)
def test_what_only_others_set_aside_is_tried_again_soon(account: Account, is_soon: bool) -> None:
    """They may give it back: a call rarely takes the most that it can."""
    accounts = (*FRESH[:-1], account)
    with pytest.raises(BudgetExceeded) as caught:
        reserve(Amount(tokens=200), accounts, daily_tokens=1000, share_per_user=1.0)
    assert (caught.value.again_at == NOW + timedelta(minutes=10)) == is_soon


def test_a_persons_day_is_of_their_zone_and_what_others_share_is_of_utc() -> None:
    """C-9: told, and tried again, as their clock has it."""
    abroad = msgspec.structs.replace(ANN, zone="America/Los_Angeles")
    late, amount = datetime(2026, 11, 24, 2, tzinfo=UTC), Amount(tokens=600)
    days = {link.name: key_of(link, abroad, late).split(".")[0] for link in chain_of(abroad)}
    assert (days["cause"], days["owner"]) == ("2026-11-23", "2026-11-23")
    assert (days["agent"], days["instance"]) == ("2026-11-24", "2026-11-24")
    for share, words, again_at in (
        (0.5, "one person .*it resets at 00:00 America/Los_Angeles", "2026-11-24T08:00:00+00:00"),
        (1.0, "resets at 00:00 UTC", "2026-11-25T00:00:00+00:00"),
    ):
        caps = Caps(daily_tokens=1000 if share < 1 else 500, share_per_user=share)
        with pytest.raises(BudgetExceeded, match=words) as caught:
            reserved(FRESH, amount, caps, abroad, late)
        assert caught.value.again_at.isoformat() == again_at
        if caught.value.notice.offer is not None:
            assert caught.value.notice.offer.ends_at == caught.value.again_at
            assert caught.value.notice.offer.day == "2026-11-23"


_moves = st.tuples(
    st.sampled_from(["Pacific/Kiritimati", "Etc/GMT+12", "UTC", "Asia/Tokyo"]),
    st.integers(0, 40),
    st.integers(1, 100),
)


@given(st.lists(_moves, min_size=1, max_size=60))
def test_who_moves_between_zones_gains_two_days_at_most(
    calls: list[tuple[str, int, int]],
) -> None:
    """However often: a date has one account. Zones are 26 hours apart at most."""
    books: dict[str, Account] = {}
    now, spent = NOW, 0
    for zone, hours, count in calls:
        now += timedelta(hours=hours)
        call = msgspec.structs.replace(ANN, zone=zone)
        keys = [key_of(link, call, now) for link in chain_of(call)]
        found = [books.get(key, Account()) for key in keys]
        caps = Caps(daily_tokens=10**6, daily_tokens_per_user=100)
        try:
            granted = reserved(found, Amount(tokens=count), caps, call, now)
        except BudgetExceeded:
            continue
        books |= {key: one.account for key, one in zip(keys, granted, strict=True)}
        spent += count
        days = (now.date() - NOW.date()).days + 1
        assert spent <= 100 * (days + 2)


def test_a_heavy_day_of_one_person_fits_into_the_default() -> None:
    """Measured with a fake model: 175 messages took a million tokens. Five times as many, and
    cycles and looks at every half hour, are no reason to stop."""
    accounts, a_message = FRESH, 1_000_000 // 175
    alone = msgspec.structs.replace(ANN, is_attended=False)
    for call in [ANN] * 5 * 175 + [alone] * 2 * 48 * 4:
        granted = reserved(accounts, Amount(tokens=a_message), Caps(), call, NOW)
        assert not any(one.notice for one in granted)
        accounts = tuple(one.account for one in granted)


def test_what_people_say_goes_on_where_what_nobody_said_has_stopped() -> None:
    """C-9: a part of a person's, agent's and instance's limit is kept for it, none of a row's."""
    budget = Caps(daily_tokens=1000, share_per_user=1.0)
    used = (Account(), *[Account(used=790) for _ in FRESH[1:]])
    alone = msgspec.structs.replace(ANN, is_attended=False)
    words = r"no more than 800 tokens of the daily limit are for what nobody said"
    with pytest.raises(BudgetExceeded, match=words) as caught:
        reserved(used, Amount(tokens=11), budget, alone, NOW)
    assert "budget.daily_tokens raises it" in str(caught.value)
    reserved(used, Amount(tokens=10), budget, alone, NOW)
    reserved(used, Amount(tokens=210), budget, ANN, NOW)
    with pytest.raises(BudgetExceeded) as stopped:
        reserved(used, Amount(tokens=211), budget, ANN, NOW)
    assert stopped.value.notice.id != caught.value.notice.id, "each is told"
    row = msgspec.structs.replace(alone, row="briefing")
    capped = Caps(daily_tokens_per_row=100)
    reserved([Account() for _ in chain_of(row)], Amount(tokens=100), capped, row, NOW)


@pytest.mark.parametrize(
    ("thread", "root", "of_loop", "is_attended"),
    [
        ("t1", "", {"is_direct": True}, True),
        ("t1", "", {"is_direct": False, "is_ordered": True}, True),  # a reminder they asked for
        ("t1", "", {"is_direct": False}, False),  # an event from outside, a look back
        ("_worker-1f", "t1", {"is_direct": False, "is_ordered": True}, True),
        ("_worker-1f", "_autonomy-1", {"is_direct": False, "is_ordered": True}, False),
        ("_cron-1", "", {"is_direct": False, "is_ordered": True}, False),
        ("_mind", "", {"is_direct": False}, False),
    ],
)
def test_whose_words_began_a_call(
    thread: str, root: str, of_loop: dict[str, bool], *, is_attended: bool
) -> None:
    cause = Cause(id="e1", seq=1, type="control")
    loop = Loop(cause=cause, fence=0, begun_at=NOW, **of_loop)  # type: ignore[arg-type]
    start = Start(prompt="x", parent="ann:vigil:t1", root=root) if root else None
    state = State(loop=loop, start=start)
    assert PaidCall.of(SessionKey("ann", "vigil", thread), state, "m").is_attended == is_attended


def test_a_model_without_a_price_runs_where_no_usd_cap_holds() -> None:
    unpriced = Amount(tokens=10, micro_usd=None)
    assert reserve(unpriced, daily_usd=inf)[0].reserved == 10
    with pytest.raises(BudgetExceeded, match=r"m has no price for today.*models\.m\.prices"):
        reserve(unpriced, daily_usd=1000.0)


@pytest.mark.parametrize(
    ("raise_max", "times", "most"), [(2.0, 0, 500), (2.0, 1, 1000), (2.0, 9, 1000), (1.5, 1, 750)]
)
def test_a_limit_is_raised_for_a_day_up_to_what_the_owner_allows(
    raise_max: float, times: int, most: int
) -> None:
    budget = Caps(daily_tokens=1000, raise_max=raise_max)

    def granted(tokens: int) -> None:
        held = {f"owner.{token_of('ann')}": times}
        reserved(FRESH, Amount(tokens=tokens), budget, ANN, NOW, lambda one, _: held.get(one, 0))

    granted(most)
    with pytest.raises(BudgetExceeded, match=f"limit of {min(most, 1000)} tokens") as caught:
        granted(most + 1)
    offer = caught.value.notice.offer
    if times or most == 1000:
        assert offer is None, "it is not offered again"
    else:
        midnight = datetime(2026, 11, 24, tzinfo=UTC)
        assert offer == RaiseOffer(day=str(DAY), ends_at=midnight, times=1, most="1000 tokens")


def test_who_raises_what_is_told_as_it_is() -> None:
    """One's own by a word, an agent's and the instance's by an admin, a team's and a session's by
    the setting alone."""
    team = msgspec.structs.replace(ANN, user=TEAM)
    for config, call, words in (
        ({"share_per_agent": 0.5}, ANN, "for today an admin's `vigil budget raise --agent vigil`"),
        ({}, ANN, "for today an admin's `vigil budget raise --all` does"),
        ({"share_per_user": 0.5}, team, "or budget.share_per_user raises it"),
        ({"share_per_session": 0.5}, ANN, "or budget.share_per_session raises it"),
        ({"share_per_user": 0.5, "raise_max": 1.0}, ANN, "or budget.share_per_user raises it"),
    ):
        budget = Caps(**{"daily_tokens": 1000, "share_per_user": 1.0} | config)  # type: ignore[arg-type]
        with pytest.raises(BudgetExceeded) as caught:
            reserved(FRESH, Amount(tokens=1001), budget, call, NOW)
        assert str(caught.value).endswith((words, f"{words} does"))
        assert caught.value.notice.offer is None


def test_whoever_was_warned_is_warned_again_once_it_is_raised() -> None:
    budget = Caps(daily_tokens=1000, raise_max=3.0)
    ids = []
    accounts = FRESH
    for times, tokens in ((0, 450), (1, 400)):
        granted = reserved(
            accounts, Amount(tokens=tokens), budget, ANN, NOW, lambda _one, _day, n=times: n
        )  # type: ignore[misc]
        accounts = tuple(one.account for one in granted)
        ids += [one.notice.id for one in granted if one.notice and one.notice.offer]
    assert len(set(ids)) == 2


def test_a_cap_of_nothing_allows_nothing() -> None:
    for config in ({"daily_tokens": 0}, {"daily_usd": 0.0}):
        with pytest.raises(BudgetExceeded):
            reserve(Amount(tokens=0, micro_usd=0), **config)


def test_each_account_has_one_notice_of_its_own_for_each_level() -> None:
    budget = Caps(daily_tokens=1000, share_per_user=1.0, share_per_session=0.5)
    told = []
    accounts = FRESH
    for _ in range(5):
        granted = reserved(accounts, Amount(tokens=100), budget, ANN, NOW)
        accounts = tuple(one.account for one in granted)
        told += [one.notice for one in granted if one.notice]
    with pytest.raises(BudgetExceeded) as caught:
        reserved(accounts, Amount(tokens=100), budget, ANN, NOW)
    texts = [one.text for one in told]
    assert texts == [
        f"{share} of the daily limit for one session is used; at 100 % model calls stop. "
        "budget.daily_tokens or budget.share_per_session raises it"
        for share in ("80%", "100%")
    ]
    assert len({one.id for one in told}) == 1, "it is told once"
    other = msgspec.structs.replace(ANN, agent="other")
    near = (Account(used=400, warned=accounts[0].warned), *FRESH[1:])
    assert not any(one.notice for one in reserved(near, Amount(tokens=50), budget, other, NOW))
    assert caught.value.notice.id != told[0].id
    tomorrow = reserved(FRESH, Amount(tokens=450), budget, ANN, NOW + timedelta(days=1))
    assert [one.notice.id for one in tomorrow if one.notice] != [told[0].id]


def test_each_has_accounts_of_their_own_and_the_instance_one() -> None:
    bob = PaidCall(user="bob", agent="vigil", cause="t1", model="m")
    keys = [{key_of(link, call, NOW) for link in chain_of(call)} for call in (ANN, bob)]
    assert keys[0] & keys[1] == {"2026-11-23.instance.all", "2026-11-23.agent.vigil"}


def test_what_a_session_starts_counts_as_its_own_and_as_its_rows() -> None:
    """A conversation can't have more by having it done; nor can a row of the timetable."""
    start = Start(prompt="look", parent="ann:vigil:t1", row="briefing")
    key = SessionKey("ann", "vigil", "_worker-1f")
    worker = PaidCall.of(key, State(start=start), "m", "cheap")
    keys = [key_of(link, worker, NOW) for link in chain_of(worker)]
    assert keys[1] == key_of(chain_of(ANN)[0], ANN, NOW)
    assert [one.split(".")[1] for one in keys] == [
        "cause", "cause", "row", "owner", "agent", "instance",
    ]  # fmt: skip
    fresh = tuple(Account() for _ in keys)
    for config, words in (
        ({"daily_tokens_per_row": 100}, "100 tokens for one row of the timetable"),
        ({"daily_usd_per_row": 0.0001}, "0.0001 USD for one row of the timetable"),
    ):
        with pytest.raises(BudgetExceeded, match=words) as caught:
            reserved(fresh, Amount(tokens=101, micro_usd=101), Caps(**config), worker, NOW)
        assert f"budget.{next(iter(config))} raises it" in str(caught.value)
    pinned = PaidCall.of(
        key, State(start=msgspec.structs.replace(start, row_tokens=50)), "m", "cheap"
    )
    with pytest.raises(BudgetExceeded, match="50 tokens for one row of the timetable") as caught:
        reserved(fresh, Amount(tokens=51), Caps(daily_tokens_per_row=100), pinned, NOW)
    assert "vigil cron edit --tokens` raises it" in str(caught.value)
    with pytest.raises(BudgetExceeded, match="20 tokens for one row of the timetable"):
        reserved(fresh, Amount(tokens=51), Caps(daily_tokens_per_row=20), pinned, NOW)
    spent = (Account(), Account(used=950), *fresh[2:])
    caps = Caps(daily_tokens_per_session=1000)
    with pytest.raises(BudgetExceeded, match="1000 tokens for one session and what it starts"):
        reserved(spent, Amount(tokens=51), caps, worker, NOW)
    (row,) = entered(
        DayOfCosts(user="ann"), worker, Usage(model="m", input_tokens=1), Amount(tokens=1)
    ).rows
    assert row.cause == "briefing"


def test_what_serves_a_goal_counts_as_its_own() -> None:
    """C-9: whichever session does it, and whatever row of the timetable began that."""
    start = Start(prompt="look", task_id="9f" * 16, row="briefing", goal="1f" * 16)
    calls = [
        PaidCall.of(SessionKey("ann", "vigil", f"_worker-{n}"), State(start=start), "m", "cheap")
        for n in (1, 2)
    ]
    kept = [{key_of(link, call, NOW) for link in chain_of(call)} for call in calls]
    assert {key.split(".")[1] for key in kept[0] & kept[1]} == {
        "goal", "row", "owner", "agent", "instance",
    }  # fmt: skip
    fresh = tuple(Account() for _ in chain_of(calls[0]))
    for config, words in (
        ({"daily_tokens_per_goal": 100}, "100 tokens for one goal"),
        ({"daily_usd_per_goal": 0.0001}, "0.0001 USD for one goal"),
    ):
        with pytest.raises(BudgetExceeded, match=words) as caught:
            reserved(fresh, Amount(tokens=101, micro_usd=101), Caps(**config), calls[0], NOW)
        assert f"budget.{next(iter(config))} raises it" in str(caught.value)
    day = DayOfCosts(user="ann")
    for call in calls:
        day = entered(day, call, Usage(model="m", input_tokens=1), Amount(tokens=1))
    assert [(row.cause, row.calls) for row in day.rows] == [("1f" * 16, 2)]


def test_what_its_sessions_start_counts_as_the_first_ones_too() -> None:
    """However deep: a branch of a worker is its conversation's."""
    key = SessionKey("ann", "vigil", "_branch-2f")
    start = Start(prompt="look", parent="ann:vigil:_worker-1f", root="t1")
    branch = PaidCall.of(key, State(start=start), "m")
    keys = [key_of(link, branch, NOW) for link in chain_of(branch)]
    assert key_of(chain_of(ANN)[0], ANN, NOW) in keys
    assert len({one for one in keys if ".cause." in one}) == 3
    spent = [Account(used=950) if one == keys[2] else Account() for one in keys]
    with pytest.raises(BudgetExceeded, match="for one session and all that comes of it"):
        reserved(spent, Amount(tokens=51), Caps(daily_tokens_per_session=1000), branch, NOW)
    usage = Usage(model="m", input_tokens=1)
    (row,) = entered(DayOfCosts(user="ann"), branch, usage, Amount(tokens=1)).rows
    assert row.cause == "t1"


@pytest.mark.parametrize(
    ("config", "most", "raised_by"),
    [
        ({"daily_tokens_per_user": 300}, 300, r"budget\.daily_tokens_per_user raises it"),
        ({"daily_tokens_per_user": 700}, 500, r"budget\.share_per_user raises it"),
        ({"daily_tokens_per_user": 0}, 0, r"budget\.daily_tokens_per_user raises it"),
        ({"daily_tokens_per_agent": 300}, 300, r"budget\.daily_tokens_per_agent raises it"),
        ({"share_per_user": 1.0, "daily_tokens_per_user": 700}, 700, "daily_tokens_per_user"),
    ],
)
def test_of_a_share_and_an_amount_the_lesser_holds(
    config: dict[str, Any], most: int, raised_by: str
) -> None:
    config = {"daily_tokens": 1000} | config
    reserve(Amount(tokens=most), **config) if most else None
    with pytest.raises(BudgetExceeded, match=raised_by):
        reserve(Amount(tokens=most + 1), **config)


def test_an_amount_in_usd_for_one_person_asks_for_prices() -> None:
    with pytest.raises(BudgetExceeded, match=r"budget\.daily_usd_per_user allows only"):
        reserve(Amount(tokens=1, micro_usd=None), daily_usd_per_user=3.0)


@pytest.mark.parametrize("tokens", [-1, 10**9 + 1, 2**63])
@pytest.mark.parametrize("kind", ["input", "output", "cache_read", "cache_write"])
def test_counts_that_can_not_be_true_are_not_taken(kind: str, tokens: int) -> None:
    assert is_plausible(Usage(model="m", input_tokens=1, output_tokens=10**9))
    assert not is_plausible(Usage(model="m", **{"input_tokens": 1, f"{kind}_tokens": tokens}))
    assert not is_plausible(Usage(model="m"))


def test_every_token_counts() -> None:
    usage = Usage(
        model="m", input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000
    )
    assert usage.tokens == 4321


def test_a_thousand_causes_make_a_bounded_record_and_right_sums() -> None:
    day = DayOfCosts(user="ann")
    for n in range(1000):
        call = PaidCall(user="ann", agent="vigil", cause=f"t{n}", model="m")
        usage = Usage(model="m", input_tokens=n)
        day = entered(day, call, usage, Amount(tokens=n, micro_usd=2 * n if n % 2 else None))
    assert len(day.rows) == ROWS_MAX + 1
    assert day.rows[-1].cause == OTHER
    assert sum(row.calls for row in day.rows) == 1000
    assert sum(row.calls_unpriced for row in day.rows) == 500
    assert sum(row.input_tokens for row in day.rows) == 499_500
    assert sum(row.micro_usd for row in day.rows) == 500_000
