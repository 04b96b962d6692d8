"""The calendar over HTTP: a link that a program subscribes to, and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import httpx2
from icalendar import Calendar

from tests.support.cli import Cli
from tests.support.gateway import Gate
from vigil.settings.tokens import token_id_of

LINKS: Final = "/api/calendar-links"
ROW: Final = {"name": "briefing", "prompt": "Look", "cron": "0 * * * *", "zone": "Europe/Berlin"}


def names_of(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    return {str(one["summary"]) for one in Calendar.from_ical(answer.content).walk("VEVENT")}


async def gone(http: httpx2.AsyncClient, path: str) -> bool:
    """Whether a link ended; a gateway learns it by a watch."""
    for _ in range(500):
        if (await http.get(path)).status_code == 404:
            return True
        await asyncio.sleep(0)
    return False


async def test_a_link_reads_one_persons_calendar_and_nothing_else(gate: Gate) -> None:
    """Calendar programs send no header; what is in their link must be good for no more."""
    ann, ben, nobody = await gate.person("ann"), await gate.person("ben"), await gate.http()
    root = await gate.person("root", is_admin=True)
    for who, name in ((ann, "mine"), (ben, "his"), (root, "the admin's")):
        assert (await who.post("/api/cron", json=ROW | {"name": name})).status_code == 201
    made = (await ann.post(LINKS, json={"name": "phone"})).json()
    assert names_of(await nobody.get(made["path"])) == {"mine"}
    roots = (await root.post(LINKS, json={})).json()
    assert names_of(await nobody.get(roots["path"])) == {"the admin's"}

    token = made["path"].rpartition("/")[2].removesuffix(".ics")
    assert made["id"] == token_id_of(token)[:12]
    for path in ("/api/cron", "/api/cron.ics", LINKS, "/api/me", "/metrics"):
        assert (await (await gate.http(token)).get(path)).status_code == 401
    bens = (await ben.post("/api/tokens", json={"user": "ben"})).status_code
    assert bens == 403
    full = await gate.token("cat")
    for other in (full, "cal_" + "A" * 43, "..", token[:-1]):
        answer = await nobody.get(f"/calendar/{other}.ics")
        assert (answer.status_code, "briefing" in answer.text) == (404, False), other
    assert (await nobody.get("/calendar/")).status_code == 404

    assert [one["name"] for one in (await ann.get(LINKS)).json()["links"]] == ["phone"]
    assert token not in (await ann.get(LINKS)).text
    assert (await ben.get(LINKS)).json()["links"] == []
    assert (await ben.delete(f"{LINKS}/{made['id']}")).status_code == 404
    tokens: list[Any] = (await root.get("/api/tokens")).json()["tokens"]
    assert [one["is_link"] for one in tokens if one["id"] == made["id"]] == [True]
    assert (await root.delete(f"{LINKS}/{made['id']}")).status_code == 200
    assert await gone(nobody, made["path"])


async def test_there_are_at_most_20_links_of_a_person(gate: Gate) -> None:
    ann = await gate.person("ann")
    for number in range(20):
        assert (await ann.post(LINKS, json={"name": f"{number}"})).status_code == 201
        while len((await ann.get(LINKS)).json()["links"]) <= number:
            await asyncio.sleep(0)
    refused = await ann.post(LINKS, json={})
    assert (refused.status_code, "end one first" in refused.text) == (422, True)
    ended = (await ann.get(LINKS)).json()["links"][0]
    assert (await ann.delete(f"{LINKS}/{ended['id']}")).status_code == 200
    two_lines = await ann.post(LINKS, json={"name": "a\nb"})
    assert (two_lines.status_code, two_lines.json()["field"]) == (422, "name")


async def test_a_link_is_made_and_ended_on_the_command_line(gate: Gate, tmp_path: Path) -> None:
    url, nobody = f"http://127.0.0.1:{gate.port}", await gate.http()
    ann = Cli(tmp_path / "cli", VIGIL_URL=url, VIGIL_TOKEN=await gate.token("ann"))

    async def cron(*args: str) -> str:
        done = await asyncio.to_thread(ann, "cron", *args)
        return done.stdout

    await cron("add", "briefing", "Look", "--every", "1d")
    path = (await cron("link", "--name", "phone")).strip().removeprefix(url)
    assert names_of(await nobody.get(path)) == {"briefing"}
    line = (await cron("links")).splitlines()[-1]
    assert "phone" in line
    await cron("unlink", line.split()[0][:6])
    assert await gone(nobody, path)
