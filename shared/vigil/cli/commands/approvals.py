"""`approvals`: what an agent may not do by itself; look at it, and decide.

What is listed and shown of them is said by the kind (`vigil.board.kinds.approval`), and how such
calls are let run from now on by another (`grant`). Deciding is by hand: a verdict is waited for.
Arguments are shown exactly: as JSON in which whatever a terminal would hide, move or turn around
is written as an escape. A verdict names the digest of what was read, so nothing else can run.
"""

from __future__ import annotations

import contextlib
import json as text_json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer

from vigil.board.kinds.approval import KIND
from vigil.board.kinds.grant import ADD, TERMS
from vigil.contracts import Verdict
from vigil.contracts.board import DECIDED, Settled
from vigil.errors import InvalidInput
from vigil.grants.proposal import constraints_of
from vigil.sdk.client import ApiError, Client
from vigil.subjects import SessionKey
from vigil.texts.exact import exact
from vigil.texts.verdict import became

from .. import exits, options, output, prefixes, tables
from ..board import kinds
from ..board.kinds import ID_LENGTH, KindCommands
from ..tables import Result

DECIDED_S: Final = 1.0
"""So long what becomes of a verdict is waited for."""
POLL_S: Final = 0.05
STORED: Final = "It is stored. It counts once the agent has taken it in."


class ApprovalCommands(KindCommands):
    """What is made of the kind; one is named by its short name, too, and an open one is meant."""

    def find(self, client: Client, id_: str) -> dict[str, Any]:
        """Return the request that is called so, or whose id begins so: an open one, or else any of
        the newest. Raises: NotReady, InvalidInput."""
        if len(id_) >= ID_LENGTH:
            return client.approval(id_)
        with contextlib.suppress(exits.NotReady):
            return self._begun(client, id_, "open")
        return self._begun(client, id_, "all")

    def _begun(self, client: Client, beginning: str, state: str) -> dict[str, Any]:
        limit = self._kind.lists.limit_max
        found = {one["id"]: one for one in client.approvals(state=state, limit=limit)}
        called = [id_ for id_, one in found.items() if one["name"] == beginning.lower()]
        if len(called) == 1:
            return found[called[0]]
        names = {one["name"] for one in found.values()}
        return found[prefixes.whole("approval", beginning, found, names=names)]


APPROVALS: Final = ApprovalCommands(KIND)
app = APPROVALS.group()
Id = Annotated[str, APPROVALS.argument()]
Digest = Annotated[
    str | None, typer.Option(metavar="HEX", help="Only if the arguments still have this digest.")
]


# ---------------------------------------------------------------- deciding


@app.command()
@kinds.asking("grants", ADD, TERMS)
def accept(
    id_: Id,
    digest: Digest = None,
    always: Annotated[
        bool,
        typer.Option(
            "--always", help="And such calls from now on: shown first, narrow as this one."
        ),
    ] = False,
    **terms: Any,
) -> Result:
    """Let it run as it is. 5 if it was decided, expired or isn't what the digest names."""
    if not always:
        return _decide(id_, "accept", Client.accept, digest, _accepted)
    client = options.client()
    found = APPROVALS.find(client, id_)
    grant = _agreed(client, found, terms)
    if not _give(client, found, "accept", Client.accept, digest).counts:
        output.message(STORED)
    return kinds.make(client, "grants", ADD, grant)


@app.command()
@kinds.asking("grants", ADD, TERMS)
def always(id_: Id, **terms: Any) -> Result:
    """Let such calls run from now on, as one that you let run before: shown first."""
    client = options.client()
    found = APPROVALS.find(client, id_)
    if found["state"] not in ("accepted", "edited"):
        raise InvalidInput("id", f"it is {found['state']}: only what you let run is taken")
    return kinds.make(client, "grants", ADD, _agreed(client, found, terms))


def _agreed(client: Client, found: dict[str, Any], terms: dict[str, Any]) -> dict[str, Any]:
    """Return a grant like a request, as narrow as it, once the person saw and took it."""
    wanted = kinds.filled(client, TERMS, terms)
    given = found.get("edited") or found["input"]
    wanted |= {
        "tool": found["tool"],
        "constraints": msgspec.to_builtins(constraints_of(found["tool"], found["risk"], given)),
        "agent": SessionKey.parse(found["session_key"]).agent,
        "approval_id": found["id"],
    }
    if found.get("is_tainted") and not wanted["holds_for_outside"]:
        output.message("Content from outside had a part in this: without --outside it asks again.")
    kinds.agree(ADD, wanted, yes=terms["yes"])
    return wanted


@app.command()
def edit(
    id_: Id,
    arguments: Annotated[
        str,
        typer.Option(
            "--input", metavar="JSON", help="The arguments to run instead: an object; -: stdin."
        ),
    ],
    digest: Digest = None,
) -> Result:
    """Let it run with other arguments."""
    instead = _arguments(sys.stdin.read() if arguments == "-" else arguments)
    edited = partial(Client.edit, arguments=instead)
    return _decide(id_, "edit", edited, digest, lambda found: _accepted(found | {"input": instead}))


@app.command()
def answer(
    id_: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to tell the agent.")],
    digest: Digest = None,
) -> Result:
    """Answer a question; of a call, say what is to be taken for its result."""
    answered = partial(Client.answer, text=" ".join(text))
    return _decide(id_, "answer", answered, digest, lambda _: "Answered.")


@app.command()
def reject(
    id_: Id,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT...]", help="Why; shown to the agent.")
    ] = None,
    digest: Digest = None,
) -> Result:
    """Refuse it."""
    rejected = partial(Client.reject, text=" ".join(text or ()))
    return _decide(id_, "reject", rejected, digest, lambda found: f"Rejected {found['tool']}.")


class _Given(NamedTuple):
    """A verdict that is stored."""

    answer: dict[str, Any]
    """What the gateway said to it."""
    counts: bool
    """Whether it does already."""


def _decide(
    id_: str,
    verdict: Verdict,
    send: Callable[..., dict[str, Any]],
    digest: str | None,
    words: Callable[[dict[str, Any]], str],
) -> Result:
    """Give a verdict on what was read; `words` say what was done. Raises: as `_give`."""
    client = options.client()
    found = APPROVALS.find(client, id_)
    stored = _give(client, found, verdict, send, digest)
    said = words(found) if stored.counts else STORED
    return tables.done(said, {"id": found["id"]} | stored.answer)


def _give(
    client: Client,
    found: dict[str, Any],
    verdict: Verdict,
    send: Callable[..., dict[str, Any]],
    digest: str | None,
) -> _Given:
    """Give a verdict by a method of the client, and wait a little for whether it counts.

    Raises:
        ApiError: 409, another verdict counted.
        InvalidInput: the session took it in, and it doesn't count: arguments that don't fit, say.
    """
    answer = send(client, found["id"], digest=digest or found["digest"])
    now = _outcome(client, found["id"])
    if now["state"] == "open":
        if why := _refusal(client, found, answer["seq"]):
            raise InvalidInput("--input" if verdict == "edit" else "verdict", why)
        return _Given(answer, counts=False)
    if now["state"] != DECIDED[verdict]:
        raise ApiError(409, {"title": "Conflict", "detail": f"it was {_became(now)}"})
    return _Given(answer, counts=True)


def _refusal(client: Client, found: Mapping[str, Any], seq: int) -> str:
    """Return why the session didn't count a verdict that is stored there as `seq`; empty: it did,
    or wasn't at it yet."""
    records = client.timeline(found["session_key"], after=seq)["records"]
    notes = (
        note for one in records if one["kind"] == "turn" for note in one["data"].get("notes", ())
    )
    return next(
        (
            str(note["text"])
            for note in notes
            if note["code"] == "verdict_refused" and note.get("subject") == found["id"]
        ),
        "",
    )


def _outcome(client: Client, id_: str) -> dict[str, Any]:
    """Return the request once it was decided, or as it is when that was waited for."""
    until = time.monotonic() + DECIDED_S
    while (found := client.approval(id_))["state"] == "open" and time.monotonic() < until:
        time.sleep(POLL_S)
    return found


def _became(found: Mapping[str, Any]) -> str:
    """Return what became of a request, in words, by whom and over which channel."""
    fields = {"by": "decided_by", "channel": "decided_channel", "at": "decided_at"}
    given = {name: found[key] for name, key in fields.items() if found.get(key)}
    return became(msgspec.convert({"id": found["id"], "state": found["state"]} | given, Settled))


def _accepted(found: Mapping[str, Any]) -> str:
    return f"Accepted {found['tool']} {exact(found['input'])}."


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = text_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("--input", f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput("--input", "must be a JSON object")
    return found
