"""A form that is sent as it was shown changes nothing: what it holds is what is stored."""

from __future__ import annotations

import html.parser
from pathlib import Path

import pytest

from services.gateway.console.pages.about import servers
from tests.support.console import HERE, Reader, signed_in
from tests.support.gateway import Gate
from vigil.settings import config

UNSEEN = "soft\u00adhyphen, \u200fעברית\u200f, wi\u200bdth, \u202eturned\u202c"


class Fields(html.parser.HTMLParser):
    """What the forms of a page hold, as a browser would send it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = [{}]  # what is in none, and then each
        self._area: str | None = None
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append({})
        is_off = found.get("type") == "checkbox" and "checked" not in found
        if tag == "input" and "name" in found and not is_off:
            self.forms[-1][found["name"]] = found.get("value", "")
        if tag == "textarea":
            self._area = found.get("name", "written")
            self.forms[-1][self._area] = ""

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1][self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            text = self.forms[-1][self._area].removeprefix("\n")
            self.forms[-1][self._area] = text.replace("\n", "\r\n")
            self._area = None


async def fields(reader: Reader, path: str, holds: str) -> dict[str, str]:
    """Return the first form of a page that has such a field or value."""
    answer = await reader.client.get(f"/console{path}")
    assert answer.status_code == 200, answer.text
    forms = Fields(answer.text).forms
    return next(one for one in forms if holds in one or holds in one.values())


async def test_a_file_that_is_saved_as_it_is_shown_stays(gate: Gate, tmp_path: Path) -> None:
    """Also a long one, with lines, and with characters that nobody sees."""
    admin = await signed_in(gate, "root", is_admin=True)
    file = tmp_path / "agents" / "vigil" / "SOUL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"{UNSEEN}\n\n" + "\n".join(f"{number}. Be brief & <kind>." for number in range(1_000))
    assert len(text) > 20_000
    file.write_text(f"{text}\n", newline="\n")
    before = file.read_bytes()
    form = await fields(admin, "/agents/vigil", "SOUL.md")
    await admin.did("/agents/vigil", **form)
    assert file.read_bytes() == before


async def test_a_row_that_is_saved_as_it_is_shown_stays(gate: Gate) -> None:
    ann, api = await signed_in(gate, "ann"), await gate.person("ann")
    prompt = f"\nFirst: {UNSEEN}\n\nThen: look."
    wanted = {"name": "tea", "prompt": prompt.strip(), "cron": "0 9 * * *"}
    made = (await api.post("/api/cron", json=wanted)).json()
    place = f"/timetable/{made['id']}"
    form = await fields(ann, place, "prompt")
    assert form["prompt"].replace("\r\n", "\n") == made["prompt"]
    await ann.did(place, **form | {"do": "change", "misfire": made["misfire"]})
    after = (await api.get(f"/api/cron/{made['id']}")).json()
    assert (after["prompt"], after["name"]) == (made["prompt"], "tea")
    assert after["revision"] == made["revision"]


async def test_what_is_asked_about_is_done_as_it_was_sent(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question brings the form along, and changes none of it; a server sees its folder."""
    monkeypatch.setattr(servers, "TRIED_S", 0.0)  # no executor runs
    admin = await signed_in(gate, "root", is_admin=True)
    folder = tmp_path / f"no\u200btes {'x' * 100}"
    folder.mkdir()
    wanted = {"do": "add", "name": "notes", "command": "true", "folders": f"'{folder}'",
              "url": "", "token": "", "risk": "read"}  # fmt: skip
    asked = await admin.client.post("/console/servers", data=wanted, headers=HERE)
    _, form = Fields(asked.text).forms
    assert form == wanted
    sure = await admin.client.post("/console/servers", data=form | {"sure": "yes"}, headers=HERE)
    assert sure.status_code == 303, sure.text
    section = config.load({}, home=tmp_path).config.mcp["notes"]
    assert section.folders == (str(folder),)


async def test_what_is_refused_is_not_lost(gate: Gate) -> None:
    """What was written in words of one's own stands on the page that says why; no key does."""
    ann, text = await signed_in(gate, "ann"), f"Water the plants,\n{UNSEEN}"
    wanted = dict.fromkeys(
        ("name", "cron", "interval_s", "at", "zone", "active_hours", "target"), ""
    )
    wanted |= {"do": "make", "prompt": text, "misfire": "latest", "day_1": "on", "time": ""}
    for path, form in {
        "/timetable": wanted,
        "/tasks": {"do": "make", "title": "", "description": text},
        "/preferences": {"do": "say", "category": "nothing", "key": "tea", "value": text},
    }.items():
        answer = await ann.send(path, **form, token="s3cret")
        assert answer.status_code == 422, answer.text
        assert Fields(answer.text).forms[0]["written"].replace("\r\n", "\n") == text
        assert f'href="/console{path}"' in answer.text
        assert "s3cret" not in answer.text
