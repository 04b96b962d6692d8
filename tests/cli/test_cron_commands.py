"""`vigil cron`: rows made, changed, looked over and exported (J-2, J-4, P-2)."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from services.scheduler.timetable.system_rows import made
from tests.support.cli import Cli
from tests.support.gateway import running_gateway
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, SlotEntry, TimetableRow
from vigil.contracts.board import AutonomyWork, EverySchedule
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

        assert (await ann())[1].startswith("Nothing recurs. `vigil cron list --all`")
        made = await ann(
            "add", "briefing", "What is new?", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin",
            "--tokens", "5000", "--stateful", "--fact", "ci=one_of[passing, failing]",
            "--fact", "open=count",
        )  # fmt: skip
        assert "At 09:00 on Monday through Friday (Europe/Berlin); next: " in "".join(made)
        (row,) = json.loads((await ann("--json"))[0])["rows"]
        assert (row["daily_tokens"], row["is_stateful"]) == (5000, True)
        assert (
            "no model of the configuration"
            in (await ann("edit", row["id"][:6], "--model", "gone", code=2))[1]
        )
        _, told_to = await ann("edit", "briefing", "--target", "gone", code=2)
        assert "no conversation's key and no channel; there is: mind, socket" in told_to
        shown = (await ann("show", "briefing"))[0]
        assert re.search(r"ci +not known yet +- +one_of\[passing, failing\]", shown)
        assert re.search(r"open +not known yet +- +count\[0\.\.999\]", shown)
        assert re.search("^timeout +2 min$", shown, re.MULTILINE)
        told = (await asyncio.to_thread(cli, "facts")).stdout
        assert told.startswith("cron briefing, for vigil: 0 of 512 bits today\n")
        assert re.search(r"ci +not known yet", told)
        refused = await ann("edit", "briefing", "--fact", "ci=free text", code=2)
        assert "'free text' is no shape: use yes_no, one_of" in refused[1]
        await ann("edit", "briefing", "--fact", "none")
        assert "not known yet" not in (await ann("show", "briefing"))[0]
        calendar = (await ann("export", "--days", "7"))[0]
        assert calendar.startswith("BEGIN:VCALENDAR")
        assert "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR\n" in calendar
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
        due_at, session = now + timedelta(minutes=1), "ann:vigil:_c-1"
        begun = SlotEntry(row=row["id"], due_at=due_at, state="running", at=now, session=session)
        last = await log.last(whose, row["id"])
        for entry in (begun, replace(begun, state="failed", reason="too slow")):
            last = await log.append(whose, last, entry)
        slots = json.loads((await ann("history", "briefing", "--json"))[0])["slots"]
        assert [one["state"] for one in slots] == ["failed", "skipped"], "each once, as it is now"
        await ann("edit", "briefing", "--every", "5m")
        assert "every 5 min" in (await ann())[0]
        assert (
            "'5 days' is no span" in (await ann("edit", "briefing", "--every", "5 days", code=2))[1]
        )
        bare = await ann("edit", "briefing", "--every", "5", code=2)
        assert "5 of what? Say 5s, 5m, 5h or 5d" in bare[1]
        assert "every 5 min" in (await ann())[0], "nothing is guessed"
        chained = await ann("add", "mend", "Mend it", "--after", "briefing", "--on", "failure")
        assert "after each run of 'briefing' that fails. Its id is" in "".join(chained)
        circle = await ann("edit", "briefing", "--after", "mend", code=2)
        assert "that is a circle" in circle[1]
        assert "--after: must name a row" in (await ann("edit", "mend", "--after", "", code=2))[1]
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
        assert (await ann())[1].startswith("Nothing recurs. `vigil cron list --all`")
        for command, name in (("show", "briefing"), ("history", "breefing")):
            gone = await ann(command, name, code=3)
            assert gone[1] == f"vigil: no row is named {name!r}\n"
        for named in ("briefing", row["id"][:8]):  # what became of it stays
            assert reasons.SET_BACK[:40] in (await ann("history", named))[0]
        await ann("add", "weather", "Look", "--every", "1d")
        near = await ann("pause", "wether", code=3)
        assert near[1] == "vigil: no row is named 'wether'; did you mean weather?\n"
        await ann("remove", "weather")
        nope = await ann("add", "tea", "Brew", "--every", "1d", "--skill", "nope", code=2)
        assert nope[1] == "vigil: skill: there is no skill 'nope'; there is: none\n"
        night = ("add", "night", "Look", "--cron", "0 2 * * *", "--hours", "08:00-18:00")
        assert "every day (UTC); nothing is due ahead" in "".join(await ann(*night))


async def test_what_a_list_shows_is_known_by_it_and_an_admin_means_their_own(
    tmp_path: Path,
) -> None:
    """P-2: an id of `list --all` is good for the other commands; a name is one's own first."""
    async with running_gateway(tmp_path / "vigil") as gate:
        now, board = datetime.now(UTC), KeptBoard(gate.admin, ROWS)
        for owner in ("ann", "root"):
            whose, change = Scope("vigil", owner), Change(by="system")
            cycle = made(
                whose, AutonomyWork(), EverySchedule(interval_s=3600), zone="UTC",
                is_enabled=True, first_at=now, now=now,
            )  # fmt: skip
            await board.create(partial(_of, cycle), whose, change, now)

        def of(token: str) -> Cli:
            url = f"http://127.0.0.1:{gate.port}"
            return Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=token)

        ann, root = of(await gate.token("ann")), of(await gate.token("root", is_admin=True))

        async def vigil(who: Cli, *args: str, code: int = 0) -> str:
            done = await asyncio.to_thread(who, *args, code=code)
            return done.stdout + done.stderr

        for who in (ann, root):
            await vigil(who, "cron", "add", "briefing", "What is new?", "--every", "1d")
            await vigil(who, "preferences", "set", "workflow", "plants", "at noon")
            await vigil(who, "grants", "add", "shell", "--name", "disk", "--command", "df", "--yes")
        for kind in ("cron", "preferences", "grants"):  # an admin's tell whose each is
            listed = (await vigil(root, kind)).splitlines()
            assert sorted(line.split()[1] for line in listed) == ["OWNER", "ann", "root"]
            assert "OWNER" not in await vigil(ann, kind)
        rows = json.loads(await vigil(ann, "cron", "list", "--all", "--json"))["rows"]
        assert len(rows) == 2
        for row in rows:
            assert row["id"] in await vigil(ann, "cron", "show", row["id"][:8])
            await vigil(ann, "cron", "history", row["id"][:8])
        for name in ("briefing", "autonomy"):
            shown = json.loads(await vigil(root, "cron", "show", name, "--json"))
            assert shown["owner"] == "root"
        assert "It begins: root:vigil:_autonomy-" in await vigil(root, "autonomy", "run")
        for kind, name in (("grants", "disk"), ("preferences", "plants")):
            shown = json.loads(await vigil(root, kind, "show", name, "--json"))
            assert shown["owner"] == "root"
        ids = [one["id"] for one in rows if one["name"] == "briefing"]
        await vigil(root, "cron", "remove", "briefing")
        head, only = (await vigil(root, "cron")).splitlines()
        assert ("OWNER" in head, only.split()[1]) == (True, "ann"), "and it isn't theirs"
        await vigil(root, "cron", "pause", "briefing")  # there is one alone now: ann's
        paused = json.loads(await vigil(ann, "cron", "show", ids[0], "--json"))
        assert not paused["is_enabled"]


def _of(row: TimetableRow, _: list[TimetableRow]) -> TimetableRow:
    return row
