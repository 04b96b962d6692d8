"""Everything that names something of somebody's, asked as its owner and as a stranger (SPEC X-4).

What there is to ask is derived from the OpenAPI document, the operations of MCP and the frames of
the socket: paths, queries, headers and bodies. A new field fails here until it is said of what kind
the thing is that it names, or that it names none; a new route, until it is said how it is asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import quote

import httpx2
import msgspec
import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from services.gateway.app import MESSAGES_PATH, SOCKET_PATH, endpoints
from services.gateway.documents.examples_http import BODIES as SHOWN
from services.gateway.http.wire import ClientFrame
from tests.support import approvals
from tests.support.gateway import Gate
from tests.support.goal_records import action_of
from tests.support.pictures import png
from tests.support.remembering import running_memories, save
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.contracts import BoardEntry, Change, DeadLetter, Job, Said, State, encode
from vigil.contracts.history import LetterHead
from vigil.memory.operation import mcp_view, operations
from vigil.subjects import Scope, SessionKey
from vigil.teams import TEAM

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER, STRANGER, BYSTANDER = "olga", "stan", "nemo"
MEMBERS: Final = ("mia", "max")
DESK: Final = "desk"
"""The agent of their team."""

KINDS: Final = {
    **dict.fromkeys(("key", "session", "session_key", "subject", "ce-subject"), "session"),
    **dict.fromkeys(("user", "userId"), "user"),
    **dict.fromkeys(("hash", "attachments"), "file"),
    "approval_id": "approval",
    "calendar": "calendar",
    **dict.fromkeys(("reply_to", "replyTo"), "answer"),
    "handle": "envelope",
    "parent": "parent",
    "row": "row",
    **dict.fromkeys(("seq", "turn"), "turn"),
    "target": "target",
    **dict.fromkeys(("from_id", "to_id", "links.to_id"), "memory"),
    **dict.fromkeys(("idempotency_key", "timer_id", "ce-id"), "label"),
}
"""A field -> what it names."""
IDS: Final = {
    "/api/approvals/": "approval",
    "/api/calendar-links/": "link",
    "/api/console/": "browser",
    "/api/cron/": "row",
    "/api/dead/": "letter",
    "/api/events": "label",
    "/api/grants/": "grant",
    "/api/goals/": "goal",
    "/api/jobs/": "job",
    "/api/memories/": "memory",
    "/api/actions/": "action",
    "/api/preferences/": "preference",
    "/api/push/": "notified",
    "/api/tasks/": "task",
    "/api/trust/": "trusted",
    "/api/why/": "story",
}
"""What `id` names, by how the path begins."""
PLAIN: Final = frozenset({
    "functions", "include_usage", "messages", "messages.content", "messages.content.image_url",
    "messages.content.image_url.url", "messages.content.text", "messages.content.type",
    "input", "input.content", "input.content.image_url", "input.content.text", "input.content.type",
    "input.role", "input.type", "background", "conversation", "previous_response_id",
    "messages.role", "n", "response_format", "stream", "stream_options",
    "stream_options.include_usage", "tools", "tools.type", "tools.name", "tools.description",
    "tools.parameters", "tools.function", "tools.function.name", "tools.function.description",
    "tools.function.parameters", "tool_choice", "parallel_tool_calls", "messages.tool_calls",
    "response_id", "messages.tool_call_id", "input.call_id", "input.output",
    "input.output.image_url", "input.output.text", "input.output.type",
    "browser", "endpoint", "replaces", "keys", "keys.auth", "keys.p256dh", "is_silent",
    "after", "agent", "agentId", "all", "agentid", "as_of", "before", "by", "channel", "days",
    "digest_at",
    "language",
    "quiet_hours", "pause", "timezone", "ce-source", "ce-specversion", "ce-time",
    "ce-type", "client", "constraints", "content", "cursor", "data", "data_base64",
    "datacontenttype", "depth", "description", "digest", "error", "expires_at", "follow", "goal",
    "holds_for_outside", "if-match", "importance", "importance_min", "jsonrpc", "kind",
    "last-event-id", "limit", "links", "links.relation", "links.weight", "message", "method",
    "mine", "mode", "name", "occurredAt", "occurred_at", "open", "params", "priority", "q", "query",
    "relation",
    "result", "service", "since", "skill", "sort", "source", "specversion", "stability", "state",
    "status", "text", "thread", "threadId", "ticket", "time", "title", "tool", "type", "types",
    "until", "is_for_all", "times",
    "turns", "uses_max", "valid_from", "valid_to", "verdict", "vouch", "weight", "what", "why",
    "with_ended",
    "with_pruned",
    "active_hours", "at", "cron", "grace_s", "interval_s", "is_enabled", "is_stateful", "jitter_s",
    "may_overlap", "misfire", "prompt", "runs_once", "timeout_s", "model", "watch",
    "daily_tokens", "watch.kind", "category", "check_interval_secs", "deadline_at",
    "is_confirmed", "is_good", "is_negative", "is_tainted", "learned_from", "outcome", "parts",
    "parts.description", "parts.success_criteria", "source_channel", "strategy",
    "success_criteria", "value", "watch.pointer", "watch.url", "zone", "watch.glob",
    "watch.command", "watch.tool", "watch.arguments",
    "autonomy_enabled", "autonomy_interval_secs", "autonomy_max_turns", "autonomy_max_workers",
    "autonomy_tasks_require_approval", "autonomy_timeout_s",
    "history", "bulletin_interval_secs", "bulletin_max_words", "bulletin_synthesis",
    "summary_interval_secs", "summary_rewriting", "facts",
    "after_on", "latest_s", "memories", "on_fact", "soonest_s", "order", "archived", "read_to",
    "address", "before_s", "event", "words", "gateway",
    "first", "is_trusted", "messages.at", "messages.id", "messages.text", "origin", "total",
})  # fmt: skip
"""Fields that name nothing that may be somebody else's: a thread or an agent is one's own, a ticket
is a secret, and a cursor only goes on in a list."""
OF_OPERATIONS: Final = {("make_grant", "goal"): "goal"}
"""Fields that name something in one operation, and nothing in others."""
ADMINS: Final = frozenset(
    {"rebuild_memories", "change_autonomy", "make_token", "end_token", "approve_tools"}
    | {"add_server", "change_server", "list_servers", "remove_server", "sign_in", "sign_out"}
    | {"list_agent_files", "write_agent_file", "get_models", "choose_model"}
    | {"list_channel_kinds", "add_channel", "remove_channel"}
    | {"list_agents", "make_agent", "change_agent"}
)
"""For admins alone, who reach it all."""
SIGNED: Final = frozenset({"post_hook", "post_channel", "get_feed"})
"""What comes in by them says by a proof of its own whose it is."""
BODIES: Final[dict[str, dict[str, Any]]] = {
    "associate_memories": {"from_id": "{memory2}", "to_id": "{memory3}"},
    "change_goal": {"status": "paused"},
    "change_job": {"status": "cancelled"},
    "change_preference": {"is_confirmed": True},
    "change_row": {"is_enabled": True},
    "change_session": {"title": "Plants"},
    "change_task": {"status": "backlog"},
    "change_person": {"language": "en"},
    "complete": {"model": "vigil", "messages": [{"role": "user", "content": "hi"}]},
    "respond": {"model": "vigil", "input": "hi"},
    "chat": {"message": "hi", "userId": "{user}", "threadId": "t1"},
    "decide_approval": {"verdict": "accept"},
    "fork_session": {},
    "give_ticket": {"session": "{session}"},
    "judge_action": {"is_good": True},
    "maintain_memories": {},
    "take_past": {
        "origin": "vigil", "conversation": "c1", "total": 1,
        "messages": [{"id": "1", "role": "user", "text": "hi", "at": "2026-01-01T00:00:00Z"}],
    },
    "trust_source": {"source": "hook:ci"},
    "make_code": {"address": "ann@example.org"},
    "make_goal": {"description": "Keep the plants alive"},
    "make_grant": {"tool": "shell", "constraints": [{"kind": "argv", "argv": ["df"]}]},
    "make_preference": {"category": "workflow", "key": "plants", "value": "at noon"},
    "make_link": {},
    "make_network_code": {"address": "@ann:example.org"},
    "make_row": {"name": "{new}", "prompt": "Water the plants", "cron": "0 9 1 1 *"},
    "make_task": {"title": "Water the plants"},
    "post_event": {
        "specversion": "1.0", "id": "{new}", "source": "urn:ci", "type": "red",
        "subject": "{session}", "data": "it failed",
    },
    "post_a2a": {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}},
    "post_mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    "post_message": {"text": "hi"},
    "raise_budget": {"times": 1},
    "replace_message": {},
    "reset_circuit": {"name": "model:big"},
    "save_memory": {"content": "Tea"},
    "split_goal": {"parts": [{"description": "Water"}]},
    "start_job": {"goal": "Water the plants"},
    "subscribe": SHOWN["PushSubscribe"]["a browser"],
    "undo_memories": {"source": "api"},
}  # fmt: skip
"""By operation, the least that it takes; ``{kind}`` is something of the asker's."""
QUERIES: Final = {"get_signals": {"follow": "false"}, "needs_upgrade": {"session": "{session}"}}
ENDLESS: Final = frozenset({"get_tokens"})
"""What is answered with a stream that goes on."""
EVENT_HEADERS: Final = {
    "ce-specversion": "1.0", "ce-id": "{new}", "ce-source": "urn:ci", "ce-type": "red",
    "ce-subject": "{session}",
}  # fmt: skip
MCP: Final = {"accept": "application/json, text/event-stream"}
REFUSALS: Final = {
    **dict.fromkeys(
        (
            "action",
            "browser",
            "notified",
            "envelope",
            "file",
            "grant",
            "job",
            "letter",
            "link",
            "preference",
            "story",
            "task",
            "trusted",
            "turn",
        ),
        (404,),
    ),
    **dict.fromkeys(("approval", "goal", "memory", "row", "session"), (404, 422)),
    **dict.fromkeys(("answer", "calendar", "parent", "target"), (422,)),
    "user": (403,),
}
"""What a stranger is answered. A label isn't here: it is a name of the asker's own, and that
somebody else gave it to a thing of theirs changes nothing."""
TEAM_REFUSALS: Final = {"session": (403, 422), "user": (403,)}
"""The same, of what names a team."""

CALENDARS: Final = {OWNER: "plants", STRANGER: "trains", TEAM: "shifts"}
"""Whose calendar is called what: each row of the timetable may follow one's own."""
Things = dict[str, tuple[str, ...]]
"""By kind, what somebody has of it."""


class Asked(NamedTuple):
    """A field of an operation, by which something may be named."""

    operation: str
    method: str
    path: str
    place: str
    field: str

    @property
    def kind(self) -> str:
        if self.field != "id":
            return OF_OPERATIONS.get((self.operation, self.field)) or KINDS[self.field]
        return next(kind for start, kind in IDS.items() if self.path.startswith(start))


# ---------------------------------------------------------------- what there is to ask


def properties(schema: Any, components: Any) -> Iterator[str]:
    """Yield the fields of a body, those of a part with a dot."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from properties(one, components)
    if "items" in schema:
        yield from properties(schema["items"], components)
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from (f"{name}.{part}" for part in properties(inner, components))


def fields_of(document: Any) -> Iterator[Asked]:
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            row = one["operationId"], method.upper(), path
            for parameter in one.get("parameters", ()):
                yield Asked(*row, parameter["in"], parameter["name"].lower()
                            if parameter["in"] == "header" else parameter["name"])  # fmt: skip
            for content in one.get("requestBody", {}).get("content", {}).values():
                names = dict.fromkeys(
                    properties(content["schema"], document["components"]["schemas"])
                )
                yield from (Asked(*row, "body", name) for name in names)


def asked(document: Any) -> list[Asked]:
    """Return the fields that name something; fail for one of which nobody said what it names."""
    fields = [one for one in fields_of(document) if one.operation not in SIGNED | ADMINS]
    rpc = {
        ("post_mcp", "id"),
        ("post_a2a", "id"),
        ("rebuild_memories", "what"),
        ("make_preference", "key"),
    }
    named = [
        one for one in fields
        if (one.field not in PLAIN and (one[0], one.field) not in rpc)
        or (one[0], one.field) in OF_OPERATIONS
    ]  # fmt: skip
    named = [one for one in named if not one.field.startswith("constraints.")]
    known = {*KINDS, "id", *(field for _, field in OF_OPERATIONS)}
    unknown = [one for one in named if one.field not in known]
    unknown += [one for one in named if one.field == "id" and not one.path.startswith((*IDS,))]
    assert not unknown, "say in KINDS, IDS or PLAIN what these name"
    bodies = {one.operation for one in fields if one.place == "body"}
    assert bodies == set(BODIES), "say in BODIES how these are asked"
    return named


# ---------------------------------------------------------------- what they have


async def things_of(
    gate: Gate, person: httpx2.AsyncClient, user: str, number: str, agent: str = "vigil"
) -> Things:
    """Give somebody one thing of each kind. `number`: a hexadecimal digit, theirs alone."""
    key, id_, now = SessionKey(user, agent, "t1"), number * 32, datetime.now(UTC)
    whose = {"agentId": agent}
    said = await person.post(f"/api/sessions/{key}/messages", json={"text": f"I am {user}"})
    envelope = LetterHead(handle=f"{number}1", what="a result", size=1, digest=id_, at=now)
    told = said.json()["event_id"]
    turn = await gate.turn(str(key), State(turns=1), ended=(told,), letters=(envelope,))
    answer = Said(
        id=f"a{id_}", session_key=str(key), text="hi", at=now, caused_by="e", turn_seq=turn.seq
    )
    await gate.admin.publish(key.out_said(answer.id), encode(answer))
    planner = key.of_kind("planner", id_)
    job = Job(id=id_, session_key=str(planner), status="running", created_at=now)
    await gate.turn(str(planner), State(turns=1))
    await gate.admin.publish(
        planner.board("job", id_), encode(BoardEntry(entity=job, turn_seq=1, at=now))
    )
    await approvals.ask(gate, approvals.request(key, id_, expires_at=now + timedelta(hours=1)))
    letter = DeadLetter(
        id=f"cortex-SESSIONS-9{number}", service="cortex", stream=key.stream, subject=key.in_user,
        seq=9, cause="not JSON", at=now, data=b"{",
    )  # fmt: skip
    await gate.admin.publish(key.dead("cortex"), encode(letter))
    grant = await person.post("/api/grants", json=BODIES["make_grant"] | whose)
    task = await person.post("/api/tasks", json=BODIES["make_task"] | whose)
    goal = await person.post("/api/goals", json=BODIES["make_goal"] | whose)
    parent = await person.post("/api/goals", json=BODIES["make_goal"] | whose)
    preference = await person.post("/api/preferences", json=BODIES["make_preference"] | whose)
    source = {"source": f"hook:{number}"}
    trusted = await person.post("/api/trust", json=source | whose)
    action = action_of(id=id_, owner=user, agent=agent)
    await KeptBoard(gate.admin, ACTIONS).create(
        lambda _: action, Scope(agent, user), Change(by=agent), now
    )
    texts = [f"{user} has the {thing}" for thing in ("key", "mat", "cup")]
    memories = [await save(person, text, **whose) for text in texts]
    return {
        "user": (user,),
        "calendar": (CALENDARS[user],),
        "session": (str(key), str(planner)),
        "approval": (id_,),
        "answer": (answer.id,),
        "envelope": (envelope.handle,),
        "action": (id_,),
        "browser": (await signed_in(person),),
        "notified": (await notified(person, f"{user}-{agent}"),),
        "link": (str((await person.post("/api/calendar-links", json={})).json()["id"]),),
        "goal": (goal.json()["id"],),
        "parent": (parent.json()["id"],),
        "grant": (grant.json()["id"],),
        "preference": (preference.json()["id"],),
        "job": (id_,),
        "task": (task.json()["id"],),
        "trusted": (trusted.json()["id"],),
        "row": (await made_row(person, **whose),),
        "target": (str(key),),
        "said": (str(said.json()["seq"]),),
        "turn": (str(turn.seq),),
        "letter": (letter.id,),
        "memory": (memories[0],),
        "memory2": (memories[1],),
        "memory3": (memories[2],),
        "story": (said.json()["event_id"],),
        "label": (f"label-{user}",),
        "file": (await uploaded(person, number),),
    }


async def notified(person: httpx2.AsyncClient, name: str) -> str:
    """Have a browser of theirs notified."""
    wanted = BODIES["subscribe"] | {"endpoint": f"https://push.example.net/send/{name}"}
    answer = await person.post("/api/push/browsers", json=wanted)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


NOWHERE: Final[Things] = {
    "user": ("nobody",),
    "calendar": ("nothing",),
    "session": ("nobody:vigil:t1", f"nobody:vigil:_planner-{'9' * 32}"),
    "approval": ("9" * 32,),
    "answer": ("9" * 32,),
    "envelope": ("z9",),
    "action": ("9" * 32,),
    "browser": ("9" * 32,),
    "notified": ("9" * 32,),
    "link": ("9" * 12,),
    "goal": ("9" * 32,),
    "parent": ("9" * 32,),
    "grant": ("9" * 32,),
    "preference": ("9" * 32,),
    "job": ("9" * 32,),
    "task": ("9" * 32,),
    "trusted": ("9" * 32,),
    "row": ("9" * 32,),
    "target": ("nobody:vigil:t1",),
    "turn": ("999999",),
    "letter": ("cortex-SESSIONS-99",),
    "memory": ("9" * 32,),
    "story": ("99999999-9999-4999-8999-999999999999",),
    "label": ("label-nobody",),
    "file": ("9" * 64,),
}
"""What there isn't, in the same form."""


class People(NamedTuple):
    gate: Gate
    document: Any
    clients: Mapping[str, httpx2.AsyncClient]
    tokens: Mapping[str, str]
    things: Mapping[str, Things]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(tmp_path_factory: Any) -> AsyncIterator[People]:
    """The gateway and the memory service, an owner and a stranger, who has things, too."""
    home: Path = tmp_path_factory.mktemp("home")
    agents = {DESK: {"kind": "team", "members": MEMBERS}}
    calendars = {
        name: {
            "kind": "file",
            "file": "c.ics",
            "user": user,
            "agent": DESK if user == TEAM else "vigil",
        }
        for user, name in CALENDARS.items()
    }
    async with running_memories(
        home,
        gateway={"chat_wait_s": 0.01},
        agents=agents,
        calendars=calendars,
        channels={"browsers": {"kind": "push"}},
    ) as gate:
        everybody = (OWNER, STRANGER, BYSTANDER, *MEMBERS)
        tokens = {user: await gate.token(user) for user in everybody}
        clients = {user: await gate.http(token) for user, token in tokens.items()}
        things = {
            user: await things_of(gate, clients[user], user, number)
            for user, number in ((OWNER, "a"), (STRANGER, "b"))
        }
        team = await things_of(gate, clients[MEMBERS[0]], TEAM, "c", DESK)
        await uploaded(clients[MEMBERS[1]], "c")  # a file is whose who sent it, in a team, too
        things |= dict.fromkeys((TEAM, *MEMBERS), team)
        document = (await clients[OWNER].get("/openapi.json")).json()
        yield People(gate, document, clients, tokens, things)


async def uploaded(person: httpx2.AsyncClient, number: str) -> str:
    data = png(1, 1, fill=number.encode())
    return str((await person.post("/api/attachments", content=data)).json()["hash"])


async def signed_in(person: httpx2.AsyncClient) -> str:
    """Sign a browser in; return its id."""
    link = (await person.post("/api/console/links")).json()["path"]
    form = {"code": link.partition("=")[2]}
    await person.post("/console/enter", data=form, headers={"sec-fetch-site": "same-origin"})
    return str((await person.get("/api/console/browsers")).json()["browsers"][0]["id"])


async def made_row(person: httpx2.AsyncClient, **whose: str) -> str:
    body = own(BODIES["make_row"], {}) | whose
    return str((await person.post("/api/cron", json=body)).json()["id"])


# ---------------------------------------------------------------- asking

_numbers = itertools.count()


def own(value: Any, things: Things) -> Any:
    """Fill in what is the asker's own."""
    if isinstance(value, dict):
        return {name: own(one, things) for name, one in value.items()}
    if not isinstance(value, str):
        return value
    mine = {kind: ids[0] for kind, ids in things.items()}
    return value.format(new=f"new-{next(_numbers)}", **mine) if value[:1] == "{" else value


async def ask(
    people: People, user: str, one: Asked, value: str, agent: str = ""
) -> tuple[int, str]:
    """Ask for `value` in that field, all else being the asker's own -> (status, answer).

    Args:
        agent: is named, too, where one can be.
    """
    things = people.things[user]
    given: dict[str, dict[str, Any]] = {
        "path": {}, "header": {}, "query": own(QUERIES.get(one.operation, {}), things),
        "body": own(BODIES.get(one.operation, {}), things),
    }  # fmt: skip
    for name in re.findall(r"{(\w+)}", one.path):
        given["path"][name] = things[one._replace(field=name).kind][0]
    if one.place == "header":
        given["header"] = own(EVENT_HEADERS, things)
    if agent:
        for place in {two.place for two in fields_of(people.document)
                      if (two.operation, two.field) == (one.operation, "agentId")}:  # fmt: skip
            given[place]["agentId"] = agent
    _fill(given, one, value, things)
    if one.path == SOCKET_PATH:
        return await _upgraded(people, user, given["query"])
    options: dict[str, Any] = {"params": given["query"], "headers": given["header"]}
    if one.operation == "post_event":
        kind = "text/plain" if one.place == "header" else "application/cloudevents+json"
        options["headers"] = {**given["header"], "content-type": kind}
        options["content"] = b"red" if one.place == "header" else msgspec.json.encode(given["body"])
    elif one.operation in BODIES:
        options["json"] = given["body"]
        options["headers"] = MCP if one.operation == "post_mcp" else {}
    path = one.path.format(**{name: quote(part) for name, part in given["path"].items()})
    async with people.clients[user].stream(one.method, path, **options) as answer:
        if one.operation in ENDLESS and answer.status_code < 300:
            return answer.status_code, ""
        await answer.aread()
        return answer.status_code, answer.text


def _fill(given: dict[str, dict[str, Any]], one: Asked, value: str, things: Things) -> None:
    """Put the value where the field is."""
    if one.operation == "replace_message":
        given["body"]["message"] = int(things["said"][0])
    if one.field == "calendar":
        given["body"].pop("cron", None)  # it says when itself
    outer, _, inner = one.field.partition(".")
    if one.operation == "fork_session" and one.field == "turn":
        given[one.place][outer] = int(value)
    elif one.field == "attachments":
        given[one.place][outer] = [value]
    else:
        given[one.place][outer] = [{inner: value}] if inner else value


async def _upgraded(people: People, user: str, query: Mapping[str, str]) -> tuple[int, str]:
    try:
        socket = await people.gate.socket(people.tokens[user], query["session"])
    except InvalidStatus as error:
        return error.response.status_code, (error.response.body or b"").decode()
    await socket.close()
    return 101, ""


def alike(answer: tuple[int, str], named: str) -> tuple[int, str]:
    """Return what an answer tells, whatever it calls the thing, and without ids and numbers."""
    status, text = answer
    text = text.replace(named, "IT")
    return status, re.sub(r"[0-9a-f]{8}[0-9a-f-]{24,28}|chat-\w+|\d+", "#", text)


# ---------------------------------------------------------------- the tests


def pairs_of(people: People, one: Asked) -> list[tuple[str, str]]:
    """Return what the owner has, each with what there isn't; each use of a label has its own."""
    tail = f"-{one.operation}-{one.place}" if one.kind == "label" else ""
    pairs = zip(people.things[OWNER][one.kind], NOWHERE[one.kind], strict=True)
    return [(theirs + tail, nothing + tail) for theirs, nothing in pairs]


async def test_a_strangers_answer_is_the_same_as_for_what_is_not_there(people: People) -> None:
    """X-4: 404, or 403 for a user in a field; whether it exists is told by nothing."""
    wrong = []
    for one in asked(people.document):
        for theirs, nothing in pairs_of(people, one):
            if one.kind == "label":
                assert (await ask(people, OWNER, one, theirs))[0] < 300, one
            found = await ask(people, STRANGER, one, theirs)
            missing = await ask(people, STRANGER, one, nothing)
            is_as_wanted = (
                found[0] in REFUSALS[one.kind] if one.kind in REFUSALS else found[0] < 300
            )
            if not is_as_wanted or alike(found, theirs) != alike(missing, nothing):
                wrong.append((*one, found, missing))
    assert not wrong


async def test_an_owner_reaches_it_by_every_field(people: People) -> None:
    """Or the test above would tell nothing: its refusals are for being somebody else."""
    wrong = []
    things = people.things[OWNER]
    for one in asked(people.document):
        if one.path.startswith("/api/memories"):  # one of them forgets it
            things["memory"] = (await save(people.clients[OWNER], "not for long"),)
        if one.operation == "make_grant":  # by now the first one is removed
            things["row"] = (await made_row(people.clients[OWNER]),)
        if one.kind == "label":
            continue  # what it does is tested above
        answer = await ask(people, OWNER, one, things[one.kind][0])
        if answer[0] in (400, 401, 403, 404, 405, 415, 422) or answer[0] >= 500:
            wrong.append((*one, answer))
    assert not wrong


async def test_a_teams_things_are_for_its_members(people: People) -> None:
    """L-17: a stranger gets 403 for what names the team, and 404 for an id; nothing tells more."""
    wrong = []
    nowhere = {**NOWHERE, "session": (f"{TEAM}:{DESK}:t9", f"{TEAM}:{DESK}:_planner-{'9' * 32}")}
    for one in asked(people.document):
        if one.kind == "label":
            continue
        refusals = TEAM_REFUSALS.get(one.kind, REFUSALS[one.kind])
        for theirs, nothing in zip(people.things[TEAM][one.kind], nowhere[one.kind], strict=True):
            for agent in ("", DESK):
                found = await ask(people, STRANGER, one, theirs, agent)
                missing = await ask(people, STRANGER, one, nothing, agent)
                is_refused = found[0] in refusals or (bool(agent) and found[0] == 403)
                is_alike = one.kind == "user" or alike(found, theirs) == alike(missing, nothing)
                if not (is_refused and is_alike):
                    wrong.append((*one, agent, found, missing))
    assert not wrong


async def test_a_teams_agent_is_for_its_members(people: People) -> None:
    """L-17: whoever else names it is refused, or is shown nothing of the team's."""
    wrong = []
    named = [one for one in fields_of(people.document) if one.field in ("agent", "agentId")]
    # For admins alone, and what is off here (`test_a2a_programs` asks it).
    others = {
        "list_agent_files",
        "write_agent_file",
        "change_agent",
        "get_card_of_agent",
        "post_a2a",
    }
    for one in (one for one in named if one.operation not in SIGNED | others):
        if one.path.startswith("/api/memories"):  # one of them forgets it
            moment = await save(people.clients[MEMBERS[0]], "a moment", agentId=DESK)
            people.things[TEAM]["memory"] = (moment,)
        status, text = await ask(people, STRANGER, one, DESK)
        if status != 403 and (one.method != "GET" or status != 200 or TEAM in text):
            wrong.append((*one, status, text))
        status, text = await ask(people, MEMBERS[0], one, DESK)
        # The user of one is the team, which its body has; the other is for admins, as an agent's
        # limit is that of all who use it.
        is_other = one.operation in ("chat", "raise_budget")
        if status >= 400 and not is_other:
            wrong.append((*one, status, text))
    assert not wrong


async def test_each_member_reaches_it_by_every_field(people: People) -> None:
    """L-17: the second is asked for what changes nothing, as the first has just changed it."""
    wrong = []
    things = people.things[TEAM]
    first, second = MEMBERS
    for one in asked(people.document):
        if one.path.startswith("/api/memories"):  # one of them forgets it
            things["memory"] = (await save(people.clients[first], "a moment", agentId=DESK),)
        if one.operation == "make_grant":  # by now the first one is removed
            things["row"] = (await made_row(people.clients[first], agentId=DESK),)
        if one.kind == "label":
            continue
        if one.operation == "distrust_source":  # likewise, by who named the agent
            body = {"source": "hook:c", "agentId": DESK}
            await people.clients[first].post("/api/trust", json=body)
        for user in (first, second) if one.method == "GET" else (first,):
            answer = await ask(people, user, one, things[one.kind][0], DESK)
            if answer[0] in (400, 401, 403, 404, 405, 415, 422) or answer[0] >= 500:
                wrong.append((user, *one, answer))
    assert not wrong


async def test_what_is_listed_for_a_stranger_is_their_own(people: People) -> None:
    """X-4: routes that name nothing show nothing of others."""
    nobodys = {one.path for one in fields_of(people.document) if one.place == "path"}
    for path, methods in people.document["paths"].items():
        if "get" in methods and path not in nobodys and path != SOCKET_PATH:
            query = QUERIES.get(methods["get"]["operationId"], {})
            for user in (STRANGER, BYSTANDER):
                answer = await people.clients[user].get(path, params=query)
                assert OWNER not in answer.text, path
                assert DESK not in answer.text, path


async def test_every_route_is_described(people: People) -> None:
    served = {(one.method, one.path.replace(":path", "")) for one in endpoints()}
    described = {
        (method.upper(), path)
        for path, methods in people.document["paths"].items()
        for method in methods
    }
    assert described == served | {("POST", MESSAGES_PATH), ("GET", "/openapi.json")}


async def test_the_tools_of_mcp_reach_only_the_askers_memory(people: People) -> None:
    """P-5, X-4: whatever a tool takes, it takes from the memory of whom the token speaks for."""
    tools = {one.mcp.name: mcp_view(one).kind for one in operations().values() if one.mcp}
    fields = {
        (tool, name) for tool, kind in tools.items() for name in kind.__struct_encode_fields__
    }
    named = {(tool, name) for tool, name in fields if name not in PLAIN}
    assert {name for _, name in named} == {"id"}, "say what these name"

    async def call(user: str, tool: str, id_: str) -> Any:
        params = {"name": tool, "arguments": {"id": id_}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await people.clients[user].post("/mcp", json=body, headers=MCP)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    (theirs,) = people.things[OWNER]["memory2"]
    for tool, _ in sorted(named, key=lambda pair: pair[0] == "memory_forget"):
        found, missing = [await call(STRANGER, tool, id_) for id_ in (theirs, "9" * 32)]
        assert alike((0, str(found)), theirs) == alike((0, str(missing)), "9" * 32), tool
        assert not (await call(OWNER, tool, theirs)).get("isError"), tool


async def test_the_frames_of_a_socket_name_nothing_but_what_is_in_its_session() -> None:
    """The session was checked when it was opened; `id` is the client's name for its message, and
    `attachments` are checked as those of any message."""
    names = {name for one in get_args(ClientFrame) for name in one.__struct_encode_fields__}
    assert names == {"text", "id", "cursor", "attachments", "reply_to"}
