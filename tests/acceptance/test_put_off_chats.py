"""Who waits for an answer while the budget has no room is told so at once (SPEC I-5, C-9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import messages_api, says
from tests.support.world import Person, running_world


async def chat(person: Person, message: str) -> dict[str, Any]:
    body = {"message": message, "userId": "ann", "threadId": "t1"}
    answer = await person.http.post("/api/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_notice_is_the_answer_and_what_is_asked_later_waits_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        messages_api(lambda _: says("Here I am.")) as api,
        running_world(
            tmp_path,
            monkeypatch,
            has_agent=False,
            model={"main": "big"},
            models={"big": {"base_url": api.url}},
            budget={"daily_tokens": 100},
        ) as world,
    ):
        ann = await world.person()
        first = (await chat(ann, "Are you there?"))["response"]
        assert first.startswith("I can't answer yet: ")
        assert "the daily limit of 50 tokens" in first
        assert first.endswith(" I will as soon as there is room.")
        second = (await chat(ann, "And this?"))["response"]
        assert second.startswith("I can't answer yet: ")
        assert second.endswith(" I'll take it up after the other.")
        assert api.requests == []
