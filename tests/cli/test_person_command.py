"""`vigil me`: what holds for a person, shown and set (LOOPS L-11)."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from services.gateway.timetable.autonomy import AutonomyChange
from tests.support.cli import Cli
from tests.support.gateway import running_gateway
from vigil.cli.cron.autonomy import SETTINGS


async def test_what_holds_is_shown_set_and_reset(tmp_path: Path) -> None:
    async with running_gateway(tmp_path / "vigil") as gate:
        url, token = f"http://127.0.0.1:{gate.port}", await gate.token("ann")
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=token)

        async def run(*args: str, code: int = 0) -> tuple[str, str]:
            done = await asyncio.to_thread(cli, "me", *args, code=code)
            return " ".join(done.stdout.split()), done.stderr

        assert "timezone UTC" in (await run())[0]
        shown = (await run("--timezone", "Asia/Tokyo", "--quiet-hours", "22:00-07:00"))[0]
        assert "timezone Asia/Tokyo (set by you)" in shown
        assert "quiet hours 22:00-07:00 (set by you)" in shown
        assert (await run())[0] == shown
        # As rows of the timetable have it.
        assert "timezone Asia/Seoul (set by you)" in (await run("--zone", "Asia/Seoul"))[0]
        assert "quiet hours none" in (await run("--reset", "quiet-hours"))[0]
        assert "timezone UTC language" in (await run("--reset", "zone"))[0]
        _, told = await run("--reset", "zome", code=2)
        assert told == "vigil: --reset: nothing is called 'zome'; did you mean zone?\n"
        assert "quiet_hours" in (await run("--quiet-hours", "late", code=2))[1]
        assert "pause on (set by you)" in (await run("--pause", "on"))[0]
        paused = (await run("--pause", "2d"))[0]
        until = re.search(r"pause until (\S+ \S+) UTC \(set by you\)", paused)
        assert until is not None, paused
        left = datetime.fromisoformat(f"{until[1]}+00:00") - datetime.now(UTC)
        assert timedelta(days=1, hours=23) < left <= timedelta(days=2)
        await run("--zone", "Asia/Seoul")
        paused = (await run("--pause", "2100-01-01T09:00"))[0]
        assert "pause until 2100-01-01 00:00:00 UTC" in paused, "nine hours behind their clocks"
        tomorrow = (datetime.now(ZoneInfo("Asia/Seoul")) + timedelta(days=1)).date()
        paused = (await run("--pause", "tomorrow 9:00"))[0]
        assert f"pause until {tomorrow} 00:00:00 UTC" in paused
        assert "no hour" in (await run("--pause", "tomorrow", code=2))[1]
        assert "pause none (set by you)" in (await run("--pause", ""))[0]
        assert "pause" in (await run("--pause", "later", code=2))[1]


async def test_settings_of_autonomy_are_reset_by_the_names_of_options_too(tmp_path: Path) -> None:
    assert set(SETTINGS) == set(AutonomyChange.__struct_fields__)
    async with running_gateway(tmp_path / "vigil") as gate:
        url, token = f"http://127.0.0.1:{gate.port}", await gate.token("root", is_admin=True)
        cli = Cli(tmp_path / "home", VIGIL_URL=url, VIGIL_TOKEN=token)

        async def changed(*args: str) -> list[str]:
            await asyncio.to_thread(cli, "autonomy", "set", *args)
            found = await asyncio.to_thread(cli.json, "autonomy", "show")
            return list(found["changed"])

        assert await changed("--every", "1h", "--look", "2h", "--bulletin", "30m") == [
            "autonomy_interval_secs", "autonomy_look_secs", "bulletin_interval_secs",
        ]  # fmt: skip
        assert await changed("--reset", "every", "--reset", "bulletin_interval_secs") == [
            "autonomy_look_secs",
        ]  # fmt: skip
        assert await changed("--reset", "look-secs", "--reset", "summary_rewriting") == []
        told = await asyncio.to_thread(cli, "autonomy", "set", "--reset", "evry", code=2)
        assert told.stderr == "vigil: --reset: nothing is called 'evry'; did you mean every?\n"
