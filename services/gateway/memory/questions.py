"""What a caller may ask of memories, and asking it: the same for HTTP and for MCP.

Whose memory it is, is decided in one place (:func:`scope_of`): the caller's own, or that of a user
whom an admin names. Nothing goes to the memory service that did not go through it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import structlog

from vigil.errors import InvalidInput, NotFound, OutcomeUnknown, Unavailable
from vigil.memory import questions, wire
from vigil.memory.client import Conflict
from vigil.memory.questions import CONTENT_BYTES_MAX, Question
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, check_part, token_of

from ..edge import Edge
from ..http.decide import check_text
from ..http.problem import Problem, erasing, unavailable
from ..http.query import check_values

log = structlog.get_logger("vigil.gateway")

MAINTENANCE_S: Final = 60.0
REBUILD_ANSWERS_S: Final = 1.0
REPLICAS_MAX: Final = 1000
RECALL_LIMIT: Final = 10
LIST_LIMIT: Final = 50
_NAMES: Final = {"thread": "threadId", "occurred_at": "occurredAt", "query": "q"}
"""What the memory service calls a field -> what the outside calls it."""


def scope_of(edge: Edge, caller: Principal, user_id: str | None, agent_id: str) -> Scope:
    """Return whose memory a request is about.

    Raises:
        InvalidInput: one of the names can't be one.
        Problem: 403, it's somebody else's, or its person is being erased.
    """
    user = caller.user if user_id is None else check_part("userId", user_id)
    check_part("agentId", agent_id)
    if not caller.may_reach(user):
        raise Problem(403, "only an admin may name another user", field="userId")
    if edge.switches.is_erasing(user):
        raise erasing()
    return edge.context.settings.config.scope_of(agent_id, user)


class Remembering:
    """Asks the memory service for one caller.

    Every method raises what `scope_of` does, InvalidInput for input that can't be used, and
    Problem: 404 for what isn't in that memory, 409, and 503 if the service doesn't answer.
    """

    def __init__(self, edge: Edge, caller: Principal) -> None:
        self._edge = edge
        self._caller = caller

    # ------------------------------------------------------------ writing

    async def save(self, body: wire.SaveBody) -> wire.SavedMemory:
        scope = self._scope(body)
        _check_save(body)
        saved: questions.Saved = await self._ask(
            scope,
            questions.Save(
                content=body.content,
                by=self._by,
                type=body.type,
                importance=body.importance,
                source=body.source,
                stability=body.stability,
                thread=body.thread_id or "",
                occurred_at=body.occurred_at,
                expires_at=body.expires_at,
                valid_from=body.valid_from,
                valid_to=body.valid_to,
                links=body.links,
                key=self._key(body.idempotency_key),
            ),
        )
        return wire.SavedMemory(id=saved.id, seq=saved.seq, is_repeat=saved.is_repeat)

    def _key(self, key: str | None) -> str:
        """Return the key of a save: the users of a team agent can't reach one another's."""
        return "" if key is None else f"api-{token_of('memory', self._caller.user, key)}"

    async def forget(self, whose: wire.Whose, id_: str) -> wire.ForgottenMemories:
        forgotten: questions.Forgotten = await self._ask(
            self._scope(whose), questions.Forget(ids=(id_,), by=self._by)
        )
        if not forgotten.forgotten:
            raise Problem(404, f"there is no memory {id_}", field="id")
        return wire.ForgottenMemories(forgotten=forgotten.forgotten)

    async def associate(self, body: wire.AssociateBody) -> wire.AssociatedMemories:
        if body.from_id == body.to_id:
            raise InvalidInput("to_id", "must be another memory than from_id")
        done: questions.Associated = await self._ask(
            self._scope(body),
            questions.Associate(
                from_id=body.from_id,
                to_id=body.to_id,
                by=self._by,
                relation=body.relation,
                weight=body.weight,
            ),
        )
        return wire.AssociatedMemories(edge=wire.edge_shown(done.edge))

    async def undo(self, body: wire.UndoBody) -> wire.UndoneSource:
        check_values(body)
        done: questions.Undone = await self._ask(
            self._scope(body), questions.Undo(source=body.source, by=self._by)
        )
        return wire.UndoneSource(
            undone=done.undone,
            restored=done.restored,
            undone_left_out=done.undone_left_out,
            restored_left_out=done.restored_left_out,
        )

    async def maintain(self, body: wire.MaintainBody) -> wire.MaintenanceDone:
        """Prune and merge: the caller's own memory, or all of them for an admin who names none."""
        if self._caller.is_admin and body.user_id is None and body.agent_id is None:
            done = await self._answered(
                self._edge.memory.maintain_all(questions.Maintain(), timeout_s=MAINTENANCE_S)
            )
        else:
            agent = wire.DEFAULT_AGENT if body.agent_id is None else body.agent_id
            scope = scope_of(self._edge, self._caller, body.user_id, agent)
            done = await self._ask(scope, questions.Maintain(), timeout_s=MAINTENANCE_S)
        return wire.MaintenanceDone(pruned=done.pruned, merged=done.merged, message=done.message)

    async def rebuild(self, body: wire.RebuildBody) -> wire.RebuildStarted:
        """Have every replica make its indexes anew. The caller is an admin."""
        question = questions.Rebuild(what=body.what)
        answers = await self._answered(
            self._edge.bus.ask_all(
                questions.REBUILD,
                msgspec.json.encode(question),
                count=REPLICAS_MAX,
                timeout=REBUILD_ANSWERS_S,
            )
        )
        if not answers:
            raise unavailable("no memory service answers; try again")
        return wire.RebuildStarted(replicas=len(answers))

    # ------------------------------------------------------------ reading

    async def look(self, wanted: wire.Look) -> wire.MemoryPage:
        """Recall what fits `q`, or list if there is none."""
        scope = self._scope(wanted)
        return await (self._recall if wanted.q.strip() else self._list)(scope, wanted)

    async def _recall(self, scope: Scope, wanted: wire.Look) -> wire.MemoryPage:
        for name, value in (
            ("sort", wanted.sort), ("after", wanted.after), ("with_ended", wanted.with_ended)
        ):  # fmt: skip
            if value:
                raise InvalidInput(name, "is for lists, so without q")
        found: questions.Recalled = await self._ask(
            scope,
            questions.Recall(
                query=wanted.q,
                limit=wanted.limit or RECALL_LIMIT,
                mode=wanted.mode or "hybrid",
                **_filters(wanted),
            ),
        )
        return wire.MemoryPage(
            user_id=scope.owner,
            agent_id=scope.agent,
            memories=tuple(wire.shown(hit.memory, hit) for hit in found.hits),
            next_after=None,
            degraded=found.degraded,
            left_out=found.left_out,
            is_empty=found.is_empty,
        )

    async def _list(self, scope: Scope, wanted: wire.Look) -> wire.MemoryPage:
        if wanted.mode is not None:
            raise InvalidInput("mode", "is for a recall, so with q")
        found: questions.Listed = await self._ask(
            scope,
            questions.ListMemories(
                sort=wanted.sort or "recent",
                limit=wanted.limit or LIST_LIMIT,
                after=wanted.after,
                with_ended=wanted.with_ended,
                **_filters(wanted),
            ),
        )
        return wire.MemoryPage(
            user_id=scope.owner,
            agent_id=scope.agent,
            memories=wire.all_shown(found.memories),
            next_after=found.next_after,
            degraded=(),
        )

    async def get(self, whose: wire.Whose, id_: str) -> wire.MemoryDetail:
        scope = self._scope(whose)
        got: questions.Got = await self._ask(scope, questions.Get(id=id_))
        return wire.MemoryDetail(
            user_id=scope.owner,
            agent_id=scope.agent,
            memory=wire.shown(got.memory),
            edges=wire.edges_shown(got.edges),
        )

    async def graph(self, wanted: wire.LookAround) -> wire.MemoryGraph:
        scope = self._scope(wanted)
        found: questions.Graph = await self._ask(
            scope, questions.GetGraph(id=wanted.id, depth=wanted.depth, limit=wanted.limit)
        )
        return wire.MemoryGraph(
            user_id=scope.owner,
            agent_id=scope.agent,
            nodes=wire.all_shown(found.nodes),
            edges=wire.edges_shown(found.edges),
        )

    async def stats(self, whose: wire.Whose) -> wire.MemoryStats:
        scope = self._scope(whose)
        found: questions.Stats = await self._ask(scope, questions.GetStats())
        return wire.MemoryStats(
            user_id=scope.owner, agent_id=scope.agent, **msgspec.structs.asdict(found)
        )

    # ------------------------------------------------------------ inside

    @property
    def _by(self) -> str:
        return f"user:{self._caller.user}"

    def _scope(self, whose: wire.Whose) -> Scope:
        return scope_of(self._edge, self._caller, whose.user_id, whose.agent_id)

    async def _ask(self, scope: Scope, question: Question, *, timeout_s: float = 0.0) -> Any:
        return await self._answered(self._edge.memory.ask(scope, question, timeout_s=timeout_s))

    async def _answered(self, asking: Any) -> Any:
        """Wait for an answer; a refusal of the service becomes ours, in the outside's words."""
        try:
            return await asking
        except NotFound as error:
            raise Problem(404, str(error) or "there is no such memory") from error
        except Conflict as error:
            raise Problem(409, str(error)) from error
        except InvalidInput as error:
            raise InvalidInput(_NAMES.get(error.field, error.field), error.reason) from error
        except OutcomeUnknown as error:
            raise unavailable("the memory service did not answer; it may be done") from error
        except Unavailable as error:
            log.info("memory is away", action="gateway.memory", error=str(error))
            raise unavailable("the memory service can't be reached; try again") from error


def _check_save(body: wire.SaveBody) -> None:
    """Refuse what fits the types and can still not be remembered. Raises: InvalidInput."""
    check_text("content", body.content, bytes_max=CONTENT_BYTES_MAX)
    check_values(body)
    for name, value in (("source", body.source), ("threadId", body.thread_id)):
        if value is not None and value.isspace():
            raise InvalidInput(name, "must not be blank")
    if body.valid_from and body.valid_to and body.valid_to < body.valid_from:
        raise InvalidInput("valid_to", "is before valid_from")


def _filters(wanted: wire.Look) -> dict[str, Any]:
    return {
        "source": wanted.source,
        "types": wanted.type,
        "since": wanted.since,
        "until": wanted.until,
        "importance_min": wanted.importance_min,
        "as_of": wanted.as_of,
        "thread": wanted.thread_id,
    }
