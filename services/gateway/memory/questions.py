"""What a caller may ask of memories, and asking it: the same for HTTP and for MCP.

Whose memory it is, is decided in one place (:func:`scope_of`): the caller's own, their team's, or
that of a user whom an admin names. Nothing goes to the memory service that did not go through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog

from vigil.errors import InvalidInput, NotFound, OutcomeUnknown, Unavailable
from vigil.memory import questions, wire
from vigil.memory.client import Conflict, NotNow
from vigil.memory.operation import Operation
from vigil.memory.operations.maintain import Maintain
from vigil.memory.questions import CONTENT_BYTES_MAX
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, check_part, token_of
from vigil.teams import DEFAULT_AGENT

from ..access import check_reach
from ..http.decide import check_text
from ..http.problem import Problem, erasing, unavailable
from ..http.query import check_value
from ..known_agents import check_agent
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

MAINTENANCE_S: Final = 60.0
REBUILD_ANSWERS_S: Final = 1.0
REPLICAS_MAX: Final = 1000


def scope_of(edge: Edge, caller: Principal, user_id: str | None, agent_id: str) -> Scope:
    """Return whose memory a request is about.

    Raises:
        InvalidInput: one of the names can't be one.
        Problem: 403, it's somebody else's, or its person is being erased.
    """
    check_part("agentId", agent_id)
    owner = caller.owner_of(agent_id) if user_id is None else check_part("userId", user_id)
    check_reach(caller, owner, agent_id, "userId")
    if edge.switches.is_erasing(owner):
        raise erasing()
    return Scope(agent_id, owner)


class Remembering:
    """Asks the memory service for one caller (:class:`vigil.memory.behalf.Memories`).

    Every method raises what `scope_of` does, InvalidInput for input that can't be used, and
    Problem: 404 for what isn't in that memory, 409, and 503 if the service doesn't answer.
    """

    def __init__(self, edge: Edge, caller: Principal) -> None:
        self._edge = edge
        self._caller = caller

    async def ask(self, operation: Operation, whose: wire.Whose, fields: Mapping[str, Any]) -> Any:
        """Ask for an operation with what a view of its struct gives; stamp the rest."""
        scope = scope_of(self._edge, self._caller, whose.user_id, whose.agent_id)
        check_given(fields)
        question = operation.checked({**fields, **self._stamps(operation, fields)})
        reply = await self._answered(self._edge.memory.ask(scope, question))
        try:
            return operation.answer_of(scope, reply)
        except NotFound as error:
            raise Problem(404, str(error), field="id") from error

    def _stamps(self, operation: Operation, fields: Mapping[str, Any]) -> dict[str, str]:
        """Return who asks, and the key of a save: the users of a team agent can't reach one
        another's."""
        names = operation.question.__struct_fields__
        stamps = {"by": f"user:{self._caller.user}"} if "by" in names else {}
        if "key" in fields:
            stamps["key"] = f"api-{token_of('memory', self._caller.user, fields['key'])}"
        return stamps

    # ------------------------------------------------------------ of the whole service

    async def maintain(self, body: wire.MaintainBody) -> wire.MaintenanceDone:
        """Prune and merge: the caller's own memory, or all of them for an admin who names none."""
        if self._caller.is_admin and body.user_id is None and body.agent_id is None:
            done = await self._answered(
                self._edge.memory.maintain_all(Maintain(), timeout_s=MAINTENANCE_S)
            )
        else:
            agent = DEFAULT_AGENT if body.agent_id is None else body.agent_id
            scope = scope_of(self._edge, self._caller, body.user_id, agent)
            await check_agent(self._edge, self._caller, agent)
            done = await self._answered(
                self._edge.memory.ask(scope, Maintain(), timeout_s=MAINTENANCE_S)
            )
        return wire.MaintenanceDone(
            pruned=done.pruned, merged=done.merged, observed=done.observed, message=done.message
        )

    async def rebuild(self, question: questions.Rebuild) -> wire.RebuildStarted:
        """Have every replica make its indexes anew. The caller is an admin."""
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

    # ------------------------------------------------------------ inside

    async def _answered(self, asking: Any) -> Any:
        """Wait for an answer; a refusal of the service becomes ours, in the outside's words."""
        try:
            return await asking
        except NotFound as error:
            raise Problem(404, str(error) or "there is no such memory") from error
        except Conflict as error:
            raise Problem(409, str(error)) from error
        except InvalidInput as error:
            raise InvalidInput(wire.NAMES.get(error.field, error.field), error.reason) from error
        except OutcomeUnknown as error:
            raise unavailable("the memory service did not answer; it may be done") from error
        except NotNow as error:
            raise unavailable(str(error)) from error
        except Unavailable as error:
            log.info("memory is away", action="gateway.memory", error=str(error))
            raise unavailable("the memory service can't be reached; try again") from error


def check_given(fields: Mapping[str, Any]) -> None:
    """Refuse what fits the types and can still not be used. Raises: InvalidInput, TooLarge."""
    for name, value in fields.items():
        shown = wire.NAMES.get(name, name)
        if name == "content":
            check_text(shown, value, bytes_max=CONTENT_BYTES_MAX)
        elif isinstance(value, str) and value.isspace() and name in ("source", "thread"):
            raise InvalidInput(shown, "must not be blank")
        check_value(shown, value)
