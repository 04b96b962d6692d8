"""What `vigil.Client` can do with conversations: say, read, steer, fork."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .method_group import MethodGroup, given, query, segment


class SessionCalls(MethodGroup):
    """Base of `vigil.Client`: sessions."""

    def send(
        self,
        key: str,
        text: str,
        *,
        idempotency_key: str | None = None,
        attachments: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Store a message; return ``{event_id, seq}``. With the same key it's stored once."""
        body = given(text=text, idempotency_key=idempotency_key)
        body |= {"attachments": list(attachments)} if attachments else {}
        return self._object("POST", f"/api/sessions/{segment(key)}/messages", body)

    def sessions(
        self,
        *,
        kind: str = "channel",
        order: str = "key",
        archived: bool | None = None,
        words: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the sessions of the token's user, page after page.

        Args:
            kind: ``channel``: conversations; ``worker``, ``branch``, ``planner``: the agent's own.
            order: ``key``, or ``newest``: where somebody wrote last first.
            archived: only those that were put away, or only the others; None: both.
            words: only those whose title or thread has all of these.
        """
        wanted: dict[str, Any] = {
            "kind": None if kind == "channel" else kind,
            "order": None if order == "key" else order,
            "archived": archived,
            "words": words or None,
            "after": None,
        }
        while True:
            page = self._object("GET", "/api/sessions" + query(wanted))
            yield from page["sessions"]
            wanted["after"] = page.get("next_after") or None
            if wanted["after"] is None:
                return

    def session(self, key: str) -> dict[str, Any]:
        return self._object("GET", f"/api/sessions/{segment(key)}")

    def change_session(
        self,
        key: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        read_to: int | None = None,
    ) -> dict[str, Any]:
        """Change how one has a conversation in one's own list; return its `title`, `is_archived`
        and `read_to`.

        Raises: ApiError with status 404, there is none; 422, naming the field.

        Args:
            title: what it's called; empty: by its first words. None stays as it is, here and below.
            archived: whether it is put away.
            read_to: sequence of the newest message that was read.
        """
        body = given(title=title, archived=archived, read_to=read_to)
        return self._object("PATCH", f"/api/sessions/{segment(key)}", body)

    def timeline(self, key: str, *, after: int = 0) -> dict[str, Any]:
        """Return the session's records with a sequence above `after`."""
        return self._object("GET", f"/api/sessions/{segment(key)}/timeline?after={after}")

    def now(self, key: str) -> dict[str, Any]:
        """Return what the session is at, and what its gates let through at present."""
        return self._object("GET", f"/api/sessions/{segment(key)}/now")

    def calls(self, key: str, *, before: int = 0) -> dict[str, Any]:
        """Return what models were asked in the session, the newest first: tokens, cost, and what
        filled each prompt.

        Args:
            before: a `turn_seq`, `next_before` of the page before; 0: the newest.
        """
        return self._object("GET", f"/api/sessions/{segment(key)}/calls?before={before}")

    def call(self, key: str, turn_seq: int) -> dict[str, Any]:
        """Return the calls of one turn, with the rows that the model was shown."""
        return self._object("GET", f"/api/sessions/{segment(key)}/calls/{turn_seq}")

    def letters(self, key: str) -> list[dict[str, Any]]:
        """Return what of a conversation the agent sees closed, the newest first: "open a12", said
        there, opens the one with that handle."""
        found: list[dict[str, Any]]
        found = self._object("GET", f"/api/sessions/{segment(key)}/letters")["letters"]
        return found

    def letter(self, key: str, handle: str) -> dict[str, Any]:
        """Return a letter whole, with the `digest` of its `text`.

        Raises: ApiError with status 404, there is none of that handle alone.
        """
        return self._object("GET", f"/api/sessions/{segment(key)}/letters/{segment(handle)}")

    def vouch(self, key: str, handle: str, *, digest: str = "") -> None:
        """Say that a letter is fine: its text is yours from now on, word for word.

        Args:
            digest: of the text that was read (`letter`); empty: of whatever it has.

        Raises: ApiError with status 404, there is none of that handle alone; 409, another text.
        """
        path = f"/api/sessions/{segment(key)}/letters/{segment(handle)}/vouch"
        self.request("POST", f"{path}?digest={segment(digest)}" if digest else path)

    def stop_vouching(self, key: str, handle: str) -> None:
        """Vouch for a letter no more: it is closed again."""
        path = f"/api/sessions/{segment(key)}/letters/{segment(handle)}/vouch"
        self.request("DELETE", path)

    def timers(self, key: str) -> dict[str, Any]:
        return self._object("GET", f"/api/sessions/{segment(key)}/timers")

    def cancel_timer(self, key: str, timer_id: str) -> None:
        self.request("DELETE", f"/api/sessions/{segment(key)}/timers/{segment(timer_id)}")

    def fork(
        self, key: str, *, turn: int | None = None, thread: str | None = None
    ) -> dict[str, Any]:
        """Begin a new thread with the history of this one; return its `session_key` and `origin`.

        Raises: ApiError with status 409, the thread has begun; 422, naming the field.

        Args:
            turn: up to which of its turns: `turn_seq` of what the agent said. None: the newest.
            thread: the name of the new thread; None: one is made.
        """
        return self._object(
            "POST", f"/api/sessions/{segment(key)}/forks", given(turn=turn, thread=thread)
        )

    def take_past(
        self,
        key: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        origin: str,
        conversation: str,
        total: int,
        first: int = 1,
        title: str | None = None,
        is_trusted: bool = False,
    ) -> dict[str, Any]:
        """Import messages of a conversation that was led elsewhere; return how many are `new`.

        Raises: ApiError with status 422, the thread holds something else, or they don't follow.

        Args:
            messages: each with `id`, `role` ("user" or "agent"), `text` and `at`; 100 at most.
            conversation: what tells it from the others there.
            total: how many it has: with the last of them the agent begins with it.
            first: the place in it of the first of these.
            title: what it is called in the caller's list, unless they named it here.
            is_trusted: whether it isn't content from outside.
        """
        body = given(
            messages=list(messages),
            origin=origin,
            conversation=conversation,
            total=total,
            first=first,
            title=title,
            is_trusted=is_trusted,
        )
        return self._object("POST", f"/api/sessions/{segment(key)}/past", body)

    def replace(
        self,
        key: str,
        *,
        message: int | None = None,
        text: str | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Take a message back, with all that came of it; return ``{event_id, seq}`` of the new one.

        Raises: ApiError with status 409, it was taken back before, or waits to be taken up.

        Args:
            message: its `seq` in the transcript. None: the newest.
            text: what is said in its place. None: the same, to be answered anew.
        """
        body = given(message=message, text=text, idempotency_key=idempotency_key)
        return self._object("POST", f"/api/sessions/{segment(key)}/versions", body)

    def delete_session(self, key: str, *, memories: bool = False) -> dict[str, Any]:
        """Delete a conversation; return its `asked_at`, `done_at` and what became of what came of
        it. Nothing of it is shown from now on; repeat it to see whether it is done.

        Raises: ApiError with status 404, there is none.

        Args:
            memories: forget what was learnt in it, too; otherwise that is kept.
        """
        query = "?memories=true" if memories else ""
        return self._object("DELETE", f"/api/sessions/{segment(key)}{query}")

    def stop(self, key: str) -> None:
        """Stop the turn that is running in the session; a worker's session ends with it."""
        self.request("POST", f"/api/sessions/{segment(key)}/stop")
