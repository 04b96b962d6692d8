"""`vigil cron`: rows made, changed, looked over and exported (J-2, J-4, P-2)."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

from tests.support.cli import Cli
from tests.support.gateway import running_gateway
from tests.support.world import StoppedClock
from vigil.contracts import SlotEntry
from vigil.subjects import Scope
from vigil.timetable import reasons
from vigil.timetable.log import SlotLog


async def test_a_row_is_made_changed_looked_over_and_exported(tmp_path: Path) -> None:
    clock = StoppedClock()
    async with running_gateway(tmp_path / "vigil", clock=clock) as gate:
        url = f"http://127.0.0.1:{gate.port}"
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))

        async def ann(*args: str, code: int = 0) -> tuple[str, str]:
            done = await asyncio.to_thread(cli, "cron", *args, code=code)
            return done.stdout, done.stderr

        assert (await ann())[1] == "Nothing recurs.\n"
        made = await ann(
            "add", "briefing", "What is new?", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin",
            "--tokens", "5000", "--stateful",
        )  # fmt: skip
        assert "At 09:00 on Monday through Friday (Europe/Berlin); next: " in "".join(made)
        (row,) = json.loads((await ann("--json"))[0])["rows"]
        assert (row["daily_tokens"], row["is_stateful"]) == (5000, True)
        assert (
            "no model of the configuration"
            in (await ann("edit", row["id"][:6], "--model", "gone", code=2))[1]
        )
        calendar = (await ann("export", "--days", "7"))[0]
        assert calendar.startswith("BEGIN:VCALENDAR")
        assert calendar.count("SUMMARY:briefing") == 5
        assert "All is well" in (await ann("doctor"))[1]
        clock.move(8 * 86_400)
        wrong = await ann("doctor", code=1)
        assert "nobody decided about what was due at" in wrong[0]
        (found,) = json.loads((await ann("doctor", "--json", code=1))[0])["findings"]
        assert (found["what"], found["name"]) == ("undecided", "briefing")
        now, whose = clock.now(), Scope("vigil", "ann")
        log, text = SlotLog(gate.admin), "clock was set back to"
        set_back = SlotEntry(
            row=row["id"], due_at=now, state="skipped", reason=reasons.SET_BACK, at=now, count=0,
            set_back_from=now + timedelta(hours=1),
        )  # fmt: skip
        assert "went on evenly" in (await asyncio.to_thread(cli, "doctor")).stdout
        await log.append(whose, await log.last(whose, row["id"]), set_back)
        assert text in (await ann("doctor", code=1))[0]
        assert text in (await asyncio.to_thread(cli, "doctor")).stdout
        assert reasons.SET_BACK[:40] in (await ann("history", "briefing"))[0]
        await ann("edit", "briefing", "--every", "5m")
        assert "every 5 min" in (await ann())[0]
        assert (
            "'5 days' is no span" in (await ann("edit", "briefing", "--every", "5 days", code=2))[1]
        )
        chained = await ann("add", "mend", "Mend it", "--after", "briefing", "--on", "failure")
        assert "after each run of 'briefing' that fails. Its id is" in "".join(chained)
        circle = await ann("edit", "briefing", "--after", "mend", code=2)
        assert "that is a circle" in circle[1]
        await ann("edit", "briefing", "--latest", "1h")
        assert "or as its runs choose: 5 min to 1 h after they end" in (await ann())[0]
        await ann("remove", "mend")
        year = clock.now().year + 1
        nine = ("add", "nine", "Look", "--at", f"{year}-12-01T09:00")
        told = "".join(await ann(*nine, "--zone", "America/New_York"))
        assert f"{year}-12-01 09:00:00 (America/New_York); next: " in told
        listed = json.loads((await ann("--json"))[0])["rows"]
        (once,) = [one for one in listed if one["name"] == "nine"]
        assert once["next_at"] == [f"{year}-12-01T14:00:00Z"]
        await ann("remove", "nine")
        await ann("pause", "briefing")
        assert "All is well" in (await ann("doctor"))[1]
        assert "SUMMARY" not in (await ann("export"))[0]
        await ann("remove", row["id"][:6])
        assert (await ann())[1] == "Nothing recurs.\n"
