"""What models answered in the stories of an eval, written down, and played again without them.

A tape is a file of JSON lines, one for each answer. In a story answers are told apart by the kind
of session that asked, what for, and their order: another version of Vigil words its requests
otherwise, and finds them still. To what was never asked a recording has no answer: that is an
error, and the story isn't judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Literal

import msgspec

from vigil.subjects import SessionKey

from ..model import LanguageModel, ModelAnswer, ModelError, ModelRequest


class TapedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a story."""

    story: str
    """With the number of the time that it was played, as ``stretch#2``."""
    kind: str
    """Of the session that asked."""
    purpose: str
    number: int
    """Of those of its kind and purpose, from 0."""
    answer: ModelAnswer


_decode: Final = msgspec.json.Decoder(TapedAnswer).decode


Place = tuple[str, str, str, int]


class Tape:
    """The answers of a run, by story."""

    def __init__(self, path: Path, mode: Literal["record", "play"]) -> None:
        """Raises: OSError, ValueError: it can't be written, or read."""
        self.is_recording = mode == "record"
        self._path = path
        self._answers: dict[Place, ModelAnswer] = {}
        if self.is_recording:
            path.write_bytes(b"")
            return
        for line in path.read_bytes().splitlines():
            one = _decode(line)
            self._answers[one.story, one.kind, one.purpose, one.number] = one.answer

    def of(self, story: str) -> StoryTape:
        """Return what a story needs, from its beginning."""
        return StoryTape(self, story)

    def keep(self, place: Place, answer: ModelAnswer) -> None:
        story, kind, purpose, number = place
        one = TapedAnswer(story=story, kind=kind, purpose=purpose, number=number, answer=answer)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")

    def find(self, place: Place) -> ModelAnswer:
        """Raises: ModelError, if nothing was recorded for it."""
        answer = self._answers.get(place)
        if answer is None:
            story, kind, purpose, number = place
            raise ModelError(
                f"the recording of {story} has no answer {number + 1} of a "
                f"{kind or 'trial'} session for {purpose}",
                is_retryable=False,
            )
        return answer


class StoryTape:
    """The answers of one story, as it's played."""

    def __init__(self, tape: Tape, story: str) -> None:
        self.tape = tape
        self._story = story
        self._counts: Counter[Place] = Counter()

    def place(self, request: ModelRequest) -> Place:
        """Return which answer of the story is asked for."""
        kind = SessionKey.parse(request.session_key).kind if request.session_key else ""
        first = (self._story, kind, request.purpose, 0)
        self._counts[first] += 1
        return (*first[:3], self._counts[first] - 1)


TAPE: Final[ContextVar[StoryTape | None]] = ContextVar("TAPE", default=None)


class TapedModel:
    """A model that is recorded, or, with none behind it, a recording of one."""

    server = None

    def __init__(self, story: StoryTape, behind: LanguageModel) -> None:
        self._story = story
        self._tape = tape = story.tape
        self._behind = behind
        self.name = behind.name
        self.is_free = not tape.is_recording or behind.is_free

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        place = self._story.place(request)
        if self._tape.is_recording:
            answer = await self._behind.answer(request, on_text)
            self._tape.keep(place, answer)
            return answer
        answer = self._tape.find(place)
        if answer.text:
            on_text(answer.text)
        return answer

    async def close(self) -> None:
        await self._behind.close()


def taped(model: LanguageModel) -> LanguageModel:
    """Return a model as the running eval wants it: itself, where there is none."""
    story = TAPE.get()
    return model if story is None else TapedModel(story, model)
