"""What a person sets holds from the next turn on, without a restart (LOOPS L-11)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.cortex.model import ModelAnswer, ModelRequest
from tests.cortex.driver import answer, call
from tests.support.scripted_model import ScriptedModel, say
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.contracts import ToolResultBlock
from vigil.settings import own
from vigil.settings.own import OwnSettings

AT = datetime(2026, 11, 23, tzinfo=UTC)
NIGHT = "2099-12-01T02:30:00+09:00"


async def test_what_is_set_holds_in_an_open_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel().install(monkeypatch)
    seen: list[ModelRequest] = []

    def behave(request: ModelRequest) -> ModelAnswer:
        seen.append(request)
        if request.rows[-1].source == "tool":
            return say("done")
        return answer(call("schedule_followup", fire_at=NIGHT, reason="r", timer_id="t"))

    model.behave = behave
    async with running_stack(tmp_path, services=("cortex",)) as stack:
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.ended(await talk.say("hello"))
        assert (seen[-1].situation.timezone, seen[-1].situation.language) == ("UTC", "")
        assert "quiet hours" not in told(talk)
        bus = await stack.bus("gateway")
        theirs = OwnSettings(
            timezone="Asia/Tokyo", language="ja", quiet_hours="22:00-07:00", at=AT, by="ann"
        )
        found = await own.put(bus, "ann", theirs, expect=0)
        while seen[-1].situation.timezone == "UTC":
            await talk.ended(await talk.say("again"))
        assert seen[-1].situation.language == "ja"
        await talk.ended(await talk.say("once more"))
        assert "It comes at 07:00 instead of 02:30 (Asia/Tokyo)" in told(talk)
        other = await Talk.open(stack, "bob:vigil:t")
        await other.ended(await other.say("hello"))
        assert seen[-1].situation.timezone == "UTC"
        assert found.revision == (await own.find(bus, "ann")).revision
        await talk.close()
        await other.close()


def told(talk: Talk) -> str:
    blocks = [block for turn in talk.turns for row in turn.rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)][-1]
