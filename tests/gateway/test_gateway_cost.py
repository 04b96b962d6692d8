"""/api/cost and `vigil cost`: one's own, or for an admin all, divided as asked."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from tests.support.cli import Cli
from tests.support.gateway import assert_problem, running_gateway
from vigil.bus.kv import KeyValue
from vigil.contracts.costs import Account, CostRow, DayOfCosts
from vigil.subjects import token_of

NAMES = {"agent": "vigil", "cause": "t1", "tier": "main", "model": "m"}
TODAY = datetime.now(UTC).date()


def row(**named: Any) -> CostRow:
    counts = {"calls": 1, "input_tokens": 30, "cache_read_tokens": 70, "micro_usd": 1500}
    return CostRow(**(NAMES | named | counts))


async def test_each_sees_their_own_and_an_admin_all(tmp_path: Path) -> None:
    async with running_gateway(tmp_path / "vigil") as gate:
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

        url = f"http://127.0.0.1:{gate.port}"
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))
        shown = (await asyncio.to_thread(cli, "cost", "--by", "cause")).stdout
        assert "0.0030" in shown
        assert "70%" in shown
        found = (await asyncio.to_thread(cli, "cost", "--json")).stdout
        assert json.loads(found) == mine
        text = (await asyncio.to_thread(cli, "cost", "--csv", "--by", "model")).stdout
        assert text.splitlines()[1].endswith(",m,2,0,60,0,140,0,3000,0.7")
