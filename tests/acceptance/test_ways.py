"""The way that the mind's words take: where the person last was, else where they were before, else
the mind learns that nobody was reached (SPEC G-6, LOOPS L-14)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_mind import outside, said
from tests.support.messages_api import says
from tests.support.messages_replies import Reply
from tests.support.mind_week import decision, running_week, words_of
from tests.support.world import Person
from tests.toys.test_pager import SECTION, Station, install, running_station
from vigil.contracts import Receipt

TICK_S = 30


async def test_words_of_the_mind_find_the_person_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-6, L-14: no conversation is open; the newest message counts, in whatever thread; a channel
    that refuses is followed by the one before; what reaches nobody is told to the next look."""
    install(tmp_path / "site", monkeypatch, pager="tests.toys.pager:Pager")
    script = Script()
    async with running_station() as (near, near_port), running_station() as (far, far_port):
        common = SECTION | {"attempts_max": 1}
        channels = {"near": common | {"port": near_port}, "far": common | {"port": far_port}}
        async with running_week(
            tmp_path / "home", monkeypatch, script, channels=channels, person={}
        ) as week:
            world, ann = week.world, week.ann
            await _write(ann, "far", "p1")
            await _write(ann, "near", "p2")

            await _tell(ann, script, "The build is red.")
            await _until(ann, near, "The build is red.")

            near.answers = ["busy 0\n"]
            await world.advance(TICK_S)
            await _tell(ann, script, "It is red again.")
            await _until(ann, far, "It is red again.")
            assert _texts(near).count("It is red again.") == 1, "it was asked first"

            other = await world.person("ann:vigil:t9", has_socket=False)
            await other.exchange("Hello from here")
            await world.advance(TICK_S)
            await _tell(ann, script, "It is green.")
            await said(ann, "It is green.")
            assert "It is green." not in _texts(near) + _texts(far), "she is at her desk"

            await _write(ann, "far", "p3")
            near.answers, far.answers = ["busy 0\n"], ["busy 0\n"]
            await world.advance(TICK_S)
            await _tell(ann, script, "It is out.")
            await ann.talk.until(lambda: any(one.outcome == "failed" for one in ann.talk.receipts))
            script.decisions.append(decision("respond", "Unheard.", text="It is out, again."))
            await world.advance(TICK_S)
            await _until(ann, far, "It is out, again.")
            assert "reached the person over no channel" in script.reports[-1]
            assert "It is out." in script.reports[-1]
            actions = (await ann.http.get("/api/actions")).json()["actions"]
            outcomes = [one["outcome"] for one in actions if one["type"] == "respond"]
            assert outcomes.count("failed") == 1
            (told,) = [one for one in ann.talk.receipts if one.outcome == "failed"]
            await _is_explained(ann, told)


class Script:
    """What the model says: decisions of looks, one after the other, and a greeting to a person."""

    def __init__(self) -> None:
        self.decisions: list[Any] = []
        self.reports: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        words = words_of(body)
        if "[Report]" not in words:
            return says("Hello.")
        self.reports.append(words)
        left = self.decisions
        decided = left.pop(0) if left else decision("no_action", "Nothing needs attention.")
        return says(json.dumps({"decisions": [decided]}))


async def _write(ann: Person, channel: str, name: str) -> None:
    """Write through a channel, and wait for the answer."""
    client = await ann.world.gate.http()
    body = {"id": name, "what": "message", "from": "555-1", "text": "Hello"}
    headers = {"x-station-key": SECTION["key"]}
    accepted = await client.post(f"/channels/{channel}", json=body, headers=headers)
    assert accepted.status_code == 202, accepted.text
    await ann.talk.ended(accepted.json()["seq"])
    await ann.world.at_rest()


async def _tell(ann: Person, script: Script, text: str) -> None:
    """Have something come in of which the mind tells her."""
    script.decisions.append(decision("respond", "She waits for it.", text=text))
    await outside(ann, text, text)


async def _until(ann: Person, station: Station, text: str) -> None:
    await ann.talk.until(lambda: any(one.text == text for one in ann.talk.said))
    await ann.world.at_rest()
    assert text in _texts(station)


def _texts(station: Station) -> list[str]:
    return [page["text"] for page in station.pages]


async def _is_explained(ann: Person, receipt: Receipt) -> None:
    story = (await ann.http.get(f"/api/why/{receipt.effect_id}")).json()
    assert "since “far” had refused it" in str(story["steps"]), story
