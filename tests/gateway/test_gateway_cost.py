"""/api/cost and `vigil cost`: one's own, or for an admin all, divided as asked."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import msgspec

from services.gateway.work.cost import CostLine
from tests.support.cli import Cli
from tests.support.gateway import Gate, assert_problem
from tests.support.stack import running_stack
from tests.support.world import StoppedClock
from vigil.bus.kv import KeyValue
from vigil.contracts.costs import Account, CostRow, DayOfCosts
from vigil.subjects import token_of
from vigil.teams import TEAM

NAMES = {"agent": "vigil", "cause": "t1", "tier": "main", "model": "m"}
CLOCK = StoppedClock()  # midnight may come while this runs
TODAY = CLOCK.now().date()


def row(**named: Any) -> CostRow:
    counts = {"calls": 1, "input_tokens": 30, "cache_read_tokens": 70, "micro_usd": 1500}
    return CostRow(**(NAMES | named | counts))


async def test_each_sees_their_own_and_an_admin_all(tmp_path: Path) -> None:
    teams = {"desk": {"kind": "team", "members": ["ann"]}, "den": {"kind": "team", "members": []}}
    async with running_stack(
        tmp_path / "vigil", services=("gateway",), clock=CLOCK, agents=teams
    ) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        bucket = KeyValue(await gate.stack.bus("cortex"), "BUDGETS")
        days = {
            ("ann", 0): (row(), row(cause="t2"), row(model="n", tier="cheap")),
            ("ann", 8): (row(),),
            ("bob", 0): (row(),),
        }
        for (user, ago), rows in days.items():
            day = TODAY - timedelta(days=ago)
            value = msgspec.json.encode(DayOfCosts(user=user, rows=rows))
            await bucket.put(f"{day}.costs.{token_of(user)}", value)
        held = msgspec.json.encode(Account(reserved=40, reserved_micro_usd=80))
        await bucket.put(f"{TODAY}.owner.{token_of('ann')}", held)

        ann, admin = await gate.person("ann"), await gate.person("op", is_admin=True)
        mine = (await ann.get("/api/cost")).json()
        assert [(one["day"], one["calls"], one["micro_usd"]) for one in mine["lines"]] == [
            (str(TODAY), 3, 4500)
        ]
        assert mine["lines"][0]["cached_share"] == 0.7
        assert (mine["reserved_tokens"], mine["reserved_micro_usd"]) == (40, 80)
        longer = (await ann.get("/api/cost?days=9&by=model&by=tier")).json()["lines"]
        assert [(one["tier"], one["model"], one["calls"]) for one in longer] == [
            ("cheap", "n", 1), ("main", "m", 3),
        ]  # fmt: skip
        everybody = (await admin.get("/api/cost?by=person")).json()["lines"]
        assert [(one["person"], one["calls"]) for one in everybody] == [("ann", 3), ("bob", 1)]
        for query, field in (("days=0", "days"), ("days=401", "days"), ("by=mood", "by")):
            assert_problem(await ann.get(f"/api/cost?{query}"), 422, field)
        assert_problem(await (await gate.http()).get("/api/cost"), 401)

        goal = (await ann.post("/api/goals", json={"description": "Keep the inbox clean"})).json()
        served = {"title": "Sort it", "goal": goal["id"]}
        assert (await ann.post("/api/tasks", json=served)).json()["goal"] == goal["id"]
        for wrong in ("0" * 32, "x"):
            refused = await ann.post("/api/tasks", json=served | {"goal": wrong})
            assert_problem(refused, 422, "goal")
        value = msgspec.json.encode(DayOfCosts(user="ann", rows=(row(cause=goal["id"]), row())))
        await bucket.put(f"{TODAY}.costs.{token_of('ann')}", value)
        shared = msgspec.json.encode(
            DayOfCosts(user=TEAM, rows=(row(agent="desk", cause="t3"), row(agent="den")))
        )
        await bucket.put(f"{TODAY}.costs.{token_of(TEAM)}", shared)
        await ann.post("/api/sessions/ann:vigil:t1/messages", json={"text": "Which  tea?"})
        for_all = (await admin.get("/api/cost?by=cause&by=person")).json()["lines"]
        assert ("ann", "t1", "") in [
            (one["person"], one["cause"], one["cause_name"]) for one in for_all
        ]  # what somebody else calls it, or said first, is nobody's to read in a bill
        mine = (await ann.get("/api/cost?by=cause&by=person")).json()
        assert [(one["person"], one["cause"], one["cause_name"]) for one in mine["lines"]] == [
            ("ann", goal["id"], "Keep the inbox clean"),
            ("ann", "t1", "Which tea?"),
            (TEAM, "t3", ""),
        ]

        url = f"http://127.0.0.1:{gate.port}"
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))
        shown = (await asyncio.to_thread(cli, "cost", "--by", "cause")).stdout
        assert all(one in shown for one in ("0.0015", "70%", "Keep the inbox clean"))
        found = await asyncio.to_thread(cli, "cost", "--json", "--by", "cause", "--by", "person")
        assert json.loads(found.stdout) == mine
        text = (await asyncio.to_thread(cli, "cost", "--csv", "--by", "model")).stdout
        head, line = text.splitlines()
        assert head.split(",") == list(CostLine.__struct_fields__)
        assert line.endswith(",m,3,0,90,0,210,0,4500,0.7")
        await _raise_limits(ann, admin, cli)
        roots = Cli(cli.home, VIGIL_URL=url, VIGIL_TOKEN=await gate.token("root", is_admin=True))
        for which, whose in ((("--all",), "of the instance"), (("--agent", "vigil"), "of vigil")):
            more = await asyncio.to_thread(roots, "budget", "raise", *which, "--times", "5")
            holds = f"limit {whose} is 2 times what is configured; budget.raise_max allows no more"
            assert holds in more.stderr + more.stdout, "five times were said, and one counts"
        await _moved(ann)
        await gate.close()


async def _moved(ann: httpx2.AsyncClient) -> None:
    """Their day is that of their clock, with a limit and raises of its own; others stay."""
    known = (await ann.get("/api/budget")).json()
    assert known["resets_at"] == f"{TODAY + timedelta(days=1)}T00:00:00Z"
    zones = {"Pacific/Kiritimati": timedelta(hours=14), "Etc/GMT+12": -timedelta(hours=12)}
    now = CLOCK.now()
    zone = next(zone for zone, ahead in zones.items() if (now + ahead).date() != now.date())
    (await ann.patch("/api/person", json={"timezone": zone})).raise_for_status()
    there = (await ann.get("/api/budget")).json()
    assert there["day"] == str((now + zones[zone]).date())
    assert (there["tokens_reserved"], there["times_raised"]) == (0, 0)
    ends_at = datetime.fromisoformat(there["resets_at"])
    assert timedelta() < ends_at - now <= timedelta(days=1)
    assert ends_at.astimezone(ZoneInfo(zone)).time() == time()
    raised = (await ann.put("/api/budget/raise", json={"times": 1})).json()
    assert (raised["day"], raised["times_raised"]) == (there["day"], 1)
    (await ann.patch("/api/person", json={"timezone": "UTC"})).raise_for_status()
    assert (await ann.get("/api/budget")).json() == known, "a raise of one date takes none back"


async def _raise_limits(ann: httpx2.AsyncClient, admin: httpx2.AsyncClient, cli: Cli) -> None:
    """C-9: one's own is everybody's to raise, the rest an admin's; each for today, and at once."""
    raised = (await ann.put("/api/budget/raise", json={"times": 1})).json()
    assert (raised["tokens_max"], raised["times_raised"], raised["times_next"]) == (
        20_000_000, 1, None,
    )  # fmt: skip
    again = (await ann.put("/api/budget/raise", json={"times": 1})).json()
    assert again == raised, "said twice, it is raised once"
    beyond = (await ann.put("/api/budget/raise", json={"times": 1000})).json()
    assert beyond == raised, "no further than the owner allows, and it says no more than that"
    for more in ({"agent": "vigil"}, {"is_for_all": True}):
        assert_problem(await ann.put("/api/budget/raise", json={"times": 1} | more), 403)
        own = (await admin.put("/api/budget/raise", json={"times": 1} | more)).json()
        assert own["times_raised"] == 0, "it isn't the admin's own"
    for wrong in ({"times": -1}, {"times": 1001}, {}, {"times": 1, "user": "bob"}):
        assert_problem(await ann.put("/api/budget/raise", json=wrong), 422)
    both = {"times": 1, "agent": "vigil", "is_for_all": True}
    assert_problem(await admin.put("/api/budget/raise", json=both), 422, "agent")
    assert (await ann.put("/api/budget/raise", json={"times": 0})).json()["tokens_max"] == 10**7
    shown = (await asyncio.to_thread(cli, "budget", "raise", "--times", "5")).stdout
    assert "of 20,000,000 tokens" in shown
    assert "once, it may not be raised further" in shown
    assert "may not be raised further" in (await asyncio.to_thread(cli, "budget", "show")).stdout
    refused = await asyncio.to_thread(cli, "budget", "raise", code=2)
    assert "budget.raise_max" in refused.stderr
    assert (await asyncio.to_thread(cli, "budget", "raise", "--all", code=4)).stderr
