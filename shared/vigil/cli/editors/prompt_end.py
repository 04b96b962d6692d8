"""How a prompt of an editor ends: told by the records of its conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from vigil.contracts import QUESTION

Permission = Literal["accept", "reject", ""]
"""What a person said to a request; empty: they didn't decide."""


class ToolUpdate(NamedTuple):
    """What an editor is shown of a call of the agent's."""

    call_id: str
    status: Literal["in_progress", "completed", "failed"]
    tool: str = ""
    arguments: Mapping[str, Any] = {}


class PromptEnd:
    """Waits for the end of what one message caused, record by record, as `/api/chat` does."""

    def __init__(self, event_id: str) -> None:
        self._event_id = event_id
        self._causes = {event_id}
        self._is_ended = False
        self._is_put_off = False
        """Whether no model is asked for now: what was said of that is all there is."""
        self._calls = set[str]()
        self.is_stopped = False
        """Whether it was ended by somebody who stopped it, or wrote again."""
        self.sends = set[str]()
        """Ids of what is to be said because of it."""
        self._settled = set[str]()
        self.requests: dict[str, Mapping[str, Any]] = {}
        """Open requests for leave that it led to, by id."""

    def take(self, kind: str, data: Mapping[str, Any]) -> Iterator[ToolUpdate]:
        """Take in a record; yield what there is to show of calls."""
        if kind.startswith("receipt"):
            self._settled.add(data["effect_id"])
        elif kind.startswith("out.said"):
            self._settled.add(data["id"])
        elif kind == "in.tool_result":
            call_id = data["payload"]["call_id"]
            if call_id in self._calls:
                is_error = data["payload"].get("is_error", False)
                yield ToolUpdate(call_id, "failed" if is_error else "completed")
        elif kind.startswith("turn"):
            yield from self._take_turn(data)

    def _take_turn(self, turn: Mapping[str, Any]) -> Iterator[ToolUpdate]:
        notes, cause = turn.get("notes", ()), turn.get("event") or {}
        for note in notes:
            if note["code"] == "joined" and note.get("subject") == self._event_id:
                self._causes.add(cause.get("id", ""))
        for effect in turn.get("effects", ()):
            payload = effect["payload"]
            if effect["type"] == "board_change":
                self._take_entity(payload["entity"])
            if payload.get("caused_by") not in self._causes:
                continue
            if effect["type"] == "send_message":
                self.sends.add(effect["id"])
            elif effect["type"] == "call_tool":
                self._calls.add(effect["id"])
                yield ToolUpdate(effect["id"], "in_progress", payload["tool"], payload["input"])
        loop = turn.get("state", {}).get("loop") or {}
        if loop.get("is_stopped") and loop.get("retry") and loop["cause"]["id"] in self._causes:
            self._is_put_off = True
        if self._event_id in turn.get("ended", ()):
            self._is_ended = True
            codes = {one["code"] for one in notes}
            self.is_stopped = turn.get("outcome") == "stopped" or "interrupted" in codes

    def _take_entity(self, entity: Mapping[str, Any]) -> None:
        if entity.get("kind") != "approval":
            return
        is_open = entity.get("state", "open") == "open"
        # What wants an answer, and no leave, is answered by words, as its text says.
        is_leave = entity["tool"] != QUESTION and entity.get("wanted") is None
        if is_open and is_leave and entity.get("caused_by") in self._causes:
            self.requests[entity["id"]] = entity
        else:
            self.requests.pop(entity["id"], None)

    @property
    def is_over(self) -> bool:
        return (self._is_ended or self._is_put_off) and self.sends <= self._settled

    @property
    def said(self) -> set[str]:
        """Ids of what was said because of it."""
        return self.sends & self._settled
