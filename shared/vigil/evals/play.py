"""A story played once, step by step, and what of it doesn't hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ..contracts import BoardChange, CallTool, ToolUseBlock, Turn, Usage
from ..contracts.board import Approval
from ..errors import VigilError
from ..zones.database import zone_named
from . import moments
from .home import staged
from .judged import Happened, Missed, SaidMessage, ToolWish, missed
from .stage import Stage, StageOptions
from .story import EvalStep, EvalStory

FAILED_NOTES = ("model_failed",)


class PlayedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it went."""

    title: str
    happened: Happened
    missed: tuple[Missed, ...] = ()


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A story as it went, once."""

    story: str
    theme: str
    steps: tuple[PlayedStep, ...] = ()
    whole: tuple[Missed, ...] = ()
    """What doesn't hold of all of it."""
    broken: str = ""
    """Why it couldn't be played to its end, or a model gave no answer: then it isn't judged."""
    took_s: float = 0.0
    model_calls: int = 0
    tokens: int = 0
    micro_usd: int | None = 0

    @property
    def held(self) -> bool:
        """Whether all that was expected holds."""
        return not self.broken and not self.whole and not any(step.missed for step in self.steps)

    def reasons(self) -> Iterator[str]:
        """Return in a line each what doesn't hold, and in which step."""
        if self.broken:
            yield self.broken
        for number, step in enumerate(self.steps, 1):
            for one in step.missed:
                yield f"step {number} ({step.title}): {described(one)}"
        for one in self.whole:
            yield f"whole: {described(one)}"


def described(one: Missed) -> str:
    return f"{one.field}: expected {one.expected}; found {one.found}"


async def play(
    story: EvalStory, options: StageOptions, now_s: Callable[[], float], number: int = 1
) -> Played:
    """Play a story once.

    Args:
        now_s: returns real seconds that never jump.
        number: of the time that it's played, for what is recorded.

    Raises:
        ConfigError: nothing can be played as things are configured.
    """
    began_s = now_s()
    steps: list[PlayedStep] = []
    broken = ""
    whole: tuple[Missed, ...] = ()
    zone = zone_named(story.timezone)
    tape = options.tape and options.tape.of(f"{story.name}#{number}")
    async with staged(story, options, tape) as stage:
        began_at = stage.clock.now()
        try:
            for step in story.step:
                steps.append(await _step(stage, step, zone))
        except VigilError as error:
            broken = f"step {len(steps) + 1} ({story.step[len(steps)].title}): {error}"
        happened = happened_in(stage.turns, stage.said, began_at, stage.planned)
        if not broken:
            happened = msgspec.structs.replace(happened, memories=await stage.memories())
            broken = next(iter(happened.failures), "")
            whole = missed(story.whole, happened, zone)
    return Played(
        story=story.name,
        theme=story.theme,
        steps=tuple(steps),
        whole=whole,
        broken=broken,
        took_s=round(now_s() - began_s, 3),
        model_calls=happened.model_calls,
        tokens=happened.tokens,
        micro_usd=happened.micro_usd,
    )


async def _step(stage: Stage, step: EvalStep, zone: ZoneInfo) -> PlayedStep:
    turns, said, began_at = len(stage.turns), len(stage.said), stage.clock.now()
    if step.say:
        await stage.say(step.say, step.thread)
    elif step.decide:
        await stage.decide(step.decide)
    elif step.mail is not None:
        mail = step.mail
        text = f"From: {mail.sender}\nSubject: {mail.subject}\n\n{mail.text}"
        await stage.outside("channel:mail", "mail", text)
    elif step.event is not None:
        await stage.outside(f"hook:{step.event.source}", "", step.event.text)
    elif step.page is not None:
        stage.pages[step.page.url] = step.page.text
    await stage.settle()
    if step.wait:
        await stage.pass_until(began_at + moments.duration("wait", step.wait))
    elif step.until:
        await stage.pass_until(moments.moment("until", step.until, began_at, zone))
    found = happened_in(stage.turns[turns:], stage.said[said:], began_at, stage.planned)
    if step.remembered or step.not_remembered:
        found = msgspec.structs.replace(found, memories=await stage.memories())
    return PlayedStep(title=step.title, happened=found, missed=missed(step, found, zone))


def happened_in(
    turns: Iterable[Turn], said: Iterable[Any], began_at: datetime, planned: tuple[str, ...]
) -> Happened:
    """Return what turns and messages of a span tell."""
    turns = tuple(turns)
    usage = [one for turn in turns for one in turn.usage]
    asked = tuple(_asked(turns))
    return Happened(
        began_at=began_at,
        messages=tuple(
            SaidMessage(
                at=one.at, text=one.text, is_unasked=one.is_autonomous or one.tag is not None
            )
            for one in said
        ),
        calls=tuple(_unique([*_wished(turns), *_ran(turns), *asked])),
        ran=tuple(_ran(turns)),
        asked=asked,
        planned=planned,
        model_calls=len(usage),
        tokens=sum(one.tokens for one in usage),
        micro_usd=_cost(usage),
        failures=tuple(
            note.text for turn in turns for note in turn.notes if note.code in FAILED_NOTES
        ),
    )


def _wished(turns: Iterable[Turn]) -> Iterator[ToolWish]:
    for turn in turns:
        for row in turn.rows:
            for block in row.blocks:
                if row.role == "assistant" and isinstance(block, ToolUseBlock):
                    yield ToolWish(tool=block.name, given=block.input)


def _ran(turns: Iterable[Turn]) -> Iterator[ToolWish]:
    for turn in turns:
        for effect in turn.effects:
            if isinstance(effect, CallTool):
                yield ToolWish(tool=effect.payload.tool, given=effect.payload.input)


def _asked(turns: Iterable[Turn]) -> Iterator[ToolWish]:
    seen: set[str] = set()
    for turn in turns:
        for effect in turn.effects:
            entity = effect.payload.entity if isinstance(effect, BoardChange) else None
            if isinstance(entity, Approval) and entity.id not in seen:
                seen.add(entity.id)
                yield ToolWish(tool=entity.tool, given=entity.input)


def _unique(wishes: Iterable[ToolWish]) -> Iterator[ToolWish]:
    """Return each once: the same wish stands in what was written, and in what came of it."""
    seen: set[bytes] = set()
    for one in wishes:
        place = msgspec.json.encode(one, order="deterministic")
        if place not in seen:
            seen.add(place)
            yield one


def _cost(usage: Iterable[Usage]) -> int | None:
    costs = [one.micro_usd for one in usage if one.tier]
    return None if None in costs else sum(cost for cost in costs if cost is not None)
