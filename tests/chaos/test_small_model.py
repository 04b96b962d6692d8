"""A small real model on llama.cpp's own server: what holds with it, and that none of what it gets
wrong is kept. In the long form alone: it takes half an hour of one core."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import jsonschema
import msgspec
import pytest

from services.cortex import choice
from services.cortex.model import LanguageModel, ModelAnswer, ModelRequest
from tests.cortex import asked as wires
from tests.cortex.asked import ask, fail, text_of, user
from tests.cortex.test_llama_cpp import BASES, SAY
from tests.cortex.test_wires import SCHEMA, WAYS
from tests.support.llama_cpp import SMALL, SMALL_WINDOW, llama_cpp, needs_small
from tests.support.stack import settings_of
from vigil.contracts import TextBlock, ToolUseBlock
from vigil.errors import Unavailable
from vigil.evals import files as stories
from vigil.evals.play import Played, play
from vigil.evals.stage import Stage, StageOptions
from vigil.evals.story import EvalStory
from vigil.observe import logs

pytestmark = [pytest.mark.chaos, needs_small]

WEAK: Final = Path(__file__).parents[1] / "evals" / "weak.toml"
LEAST: Final = 30
"""Characters of what was wrong: less may stand anywhere."""
SIDE_BY_SIDE: Final = 2
BEGUN_MAX: Final = 5
PATIENCE_S: Final = 300.0
ANSWER: Final = 128
"""Tokens: it repeats itself for as long as it may."""


class Seen(msgspec.Struct):
    """What of a story is looked at."""

    asked: list[tuple[ModelRequest, ModelAnswer]] = []
    memories: tuple[str, ...] = ()


SEEN: Final[ContextVar[Seen]] = ContextVar("SEEN")
"""Of the story that is played: its services run in its context."""


class Watched:
    """A model whose requests and answers are kept for the story that asks."""

    def __init__(self, behind: LanguageModel, seen: Seen) -> None:
        self._behind, self._seen = behind, seen
        self.name, self.is_free, self.server = behind.name, behind.is_free, behind.server

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        found = await self._behind.answer(request, on_text)
        self._seen.asked.append((request, found))
        return found

    async def close(self) -> None:
        await self._behind.close()


def _watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that is asked in a story kept, and what its memory holds at the end."""
    opened, memories = choice.opened, Stage.memories

    async def remembered(stage: Stage) -> tuple[str, ...]:
        found = await memories(stage)
        SEEN.get().memories = found
        return found

    monkeypatch.setattr(choice, "opened", lambda *given: Watched(opened(*given), SEEN.get()))
    monkeypatch.setattr(Stage, "memories", remembered)


def is_wrong(request: ModelRequest, answer: ModelAnswer) -> str:
    """Return what is wrong with the form of an answer; empty: nothing, as far as a form tells."""
    shown = {tool.name for tool in request.tools}
    strange = [b.name for b in answer.blocks if isinstance(b, ToolUseBlock) and b.name not in shown]
    if strange:
        return f"calls {strange[0]}, which it wasn't shown"
    if request.schema is None:
        return "cut off" if answer.stop_reason == "max_tokens" else ""
    try:
        jsonschema.validate(msgspec.json.decode(answer.text), request.schema)
    except msgspec.DecodeError:
        return "no JSON"
    except jsonschema.ValidationError as error:
        return f"not by the schema: {error.message[:60]}"
    return ""


def kept(seen: Seen, known: tuple[str, ...]) -> Iterator[str]:
    """Return where something stands that was wrong: in memory, or in what was shown later, but for
    the one request that asks for it again."""
    wrong: set[str] = set()
    newest: dict[tuple[str, str], str] = {}
    for request, answer in seen.asked:
        place = (request.session_key, request.purpose)
        shown, text = shown_in(request), answer.text.strip()
        for one in wrong:
            if one in shown and one != newest.get(place):
                yield f"shown for {request.purpose}: {one}"
        newest[place] = text
        # What repeats what it was shown stands elsewhere by right.
        is_long = len(text) >= LEAST and text not in shown
        if request.schema is not None and is_long and is_wrong(request, answer):
            wrong.add(text)
    for one in wrong:
        yield from (f"in memory: {memory}" for memory in seen.memories if one in memory)
    for memory in seen.memories:
        if memory not in known and not any(memory in _saved(answer) for _, answer in seen.asked):
            yield f"in memory, and nobody saved it: {memory}"


def shown_in(request: ModelRequest) -> str:
    blocks = [block for row in request.rows for block in row.blocks]
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    return "\n".join((*request.system, *texts, request.present))


def _saved(answer: ModelAnswer) -> str:
    return str([block.input for block in answer.blocks if isinstance(block, ToolUseBlock)])


async def _played(story: EvalStory, options: StageOptions) -> tuple[Seen, Played]:
    """Play a story; one whose home couldn't be made, on a machine that is busy, is begun anew."""
    for attempt in range(1, BEGUN_MAX + 1):
        found = Seen(asked=[])
        SEEN.set(found)
        try:
            return found, await play(story, options, time.monotonic)
        except Unavailable:
            if attempt == BEGUN_MAX:
                raise
    raise AssertionError("it was begun at least once")


def _row(played: Played, seen: Seen, kept_wrong: list[str]) -> str:
    wrong = [why for pair in seen.asked if (why := is_wrong(*pair))]
    said = "; ".join(f"{count} x {why}" for why, count in Counter(wrong).most_common(3)) or "-"
    expected = "-" if played.theme == "weak" else "yes" if played.held else "no"
    outcome = "broken" if played.broken else expected
    cells = (
        f"{played.theme}/{played.story}", outcome, str(played.model_calls), str(played.tokens),
        f"{played.took_s:.0f}", said, str(len(seen.memories)), str(len(kept_wrong)),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


@pytest.mark.long  # a model that thinks
@pytest.mark.parametrize("provider", WAYS)
async def test_it_is_asked_by_each_wire(provider: str) -> None:
    """Chat, streams, a call of a tool, a schema, too much, and a call that is cancelled: whatever
    it says, it's an answer or an error with a kind."""
    async with llama_cpp(SMALL, SMALL_WINDOW) as url:
        model = WAYS[provider].to(url + BASES[provider])
        pieces: list[str] = []
        patient: dict[str, Any] = {"timeout_s": PATIENCE_S, "tools": ()}
        hello = wires.request(user("Hello! Who are you?"), max_tokens=30, **patient)
        answer = await model.answer(hello, pieces.append)
        assert text_of(answer) == "".join(pieces)
        assert len(pieces) > 1
        assert 0 < answer.usage.output_tokens <= 30
        called = await ask(
            model, user("Say the word ok."), max_tokens=60, **patient | {"tools": (SAY,)}
        )
        assert called.blocks
        formed = await ask(model, user("Say ok."), max_tokens=200, schema=SCHEMA, **patient)
        if provider == "openai" and formed.stop_reason != "max_tokens":
            jsonschema.validate(msgspec.json.decode(text_of(formed)), SCHEMA)
        error = await fail(model, rows=(user("word " * SMALL_WINDOW),), **patient)
        assert (error.kind, error.limit_tokens) == ("too_long", SMALL_WINDOW)

        begun = asyncio.Event()
        long = wires.request(user("Tell me a long story."), max_tokens=2000, **patient)
        going = asyncio.create_task(model.answer(long, lambda _: begun.set()))
        await begun.wait()
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S):  # its one slot is free again
            assert (await ask(model, user("Hello!"), max_tokens=5, **patient)).blocks
        await model.close()


@pytest.mark.long
async def test_none_of_what_it_gets_wrong_in_fifty_stories_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither memory nor a later prompt holds an answer that had no form; no story is broken by one
    of ours; a table tells what held."""
    logs.configure(stream=(tmp_path / "log").open("w"))
    _watch(monkeypatch)
    told = [*stories.of_file(WEAK)]
    told += (one for theme in stories.STARTER for one in stories.starter(theme))
    async with llama_cpp(SMALL, SMALL_WINDOW, SIDE_BY_SIDE) as url:
        settings = settings_of(
            tmp_path,
            model={"main": "small", "max_tokens": ANSWER, "cheap": ""},
            models={"small": {"provider": "openai", "model": "small", "base_url": f"{url}/v1",
                              "context_tokens": SMALL_WINDOW}},
        )  # fmt: skip
        turns = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(story: EvalStory) -> tuple[Played, Seen, list[str]]:
            async with turns:
                found, played = await _played(story, StageOptions(settings=settings))
                wrong = list(kept(found, story.knows))
                print(_row(played, found, wrong), flush=True)
                return played, found, wrong

        print("\n| story | held | calls | tokens | s | wrong | memories | of those wrong |")
        print("|---|---|---|---|---|---|---|---|")
        results = await asyncio.gather(*(one(story) for story in told))
    held = sum(played.held for played, _, _ in results if played.theme != "weak")
    asked = [pair for _, seen, _ in results for pair in seen.asked]
    wrong = sum(bool(is_wrong(*pair)) for pair in asked)
    print(f"\n{held} of the 40 that expect something held")
    print(f"{len(asked)} answers, {wrong} of a wrong form")
    assert len(results) == 50
    assert not [line for _, _, lines in results for line in lines]
    assert not [played.broken for played, _, _ in results if "ended: " in played.broken]
