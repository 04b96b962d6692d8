"""What handlers ask of a request: who calls, which session or id it names, its body.

Bodies and answers are msgspec structs: `body_of(T)` decodes, `http.json.Json` encodes, and
:mod:`.documents.openapi` adds their schemas to the document that FastAPI makes of the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from fastapi import Depends, Path, Query, Request

from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from .access import PRINCIPAL, own_session, readable_session
from .gone import shown
from .http import body
from .http.problem import Problem, unauthorized
from .http.query import query_of
from .http.wire import (
    ID_SCHEMA,
    KEY_SCHEMA,
    OWN_KEY_SCHEMA,
    PART_SCHEMA,
)
from .state.edge import Edge

T = TypeVar("T")
SEQ_MAX: Final = 2**53


def body_of(
    kind: type[T], other_names: Mapping[str, str] | None = None
) -> Callable[[Request], Awaitable[T]]:
    """Return a dependency that reads and decodes the body as `kind`.

    Args:
        other_names: names that fields have, too, and those that they have in `kind`.
    """
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        config = edge_of(request).config
        data = await body.read(request.scope, request.receive, config.body_bytes_max)
        if other_names:
            data = body.by_documented_names(data, other_names)
        return body.decode(data, decoder, config.json_depth_max)

    return read


def query_as(kind: type[Any]) -> Any:
    """Return the type of a parameter that the whole query is read into, as strictly as a body."""

    async def read(request: Request) -> Any:
        return query_of(request.scope["query_string"], kind)

    return Annotated[kind, Depends(read)]


def edge_of(request: Request) -> Edge:
    return cast(Edge, request.app.state.edge)


def check_let_in(edge: Edge, caller: Principal) -> None:
    """Check that a caller's token counts yet, as they waited. Raises: Problem, it doesn't."""
    if edge.tokens.find_id(caller.token_id, edge.clock.now()) is None:
        raise unauthorized("the token has ended")


async def _edge(request: Request) -> Edge:
    return edge_of(request)


async def _principal(request: Request) -> Principal:
    return cast(Principal, request.scope[PRINCIPAL])


async def _session(
    request: Request,
    key: Annotated[
        str, Path(description="userId:agentId:threadId", json_schema_extra=OWN_KEY_SCHEMA)
    ],
) -> SessionKey:
    return shown(edge_of(request), own_session(key, request.scope[PRINCIPAL]))


async def _own_session(
    request: Request,
    key: Annotated[
        str, Path(description="userId:agentId:threadId", json_schema_extra=OWN_KEY_SCHEMA)
    ],
) -> SessionKey:
    return own_session(key, request.scope[PRINCIPAL])


async def _readable(
    request: Request,
    key: Annotated[str, Path(description="userId:agentId:threadId", json_schema_extra=KEY_SCHEMA)],
) -> SessionKey:
    return shown(edge_of(request), readable_session(key, request.scope[PRINCIPAL]))


async def _admin(request: Request) -> Principal:
    principal = cast(Principal, request.scope[PRINCIPAL])
    if not principal.is_admin:
        raise Problem(403, "this needs an admin token")
    return principal


def id_of(what: str, name: str = "") -> Callable[[str], Awaitable[str]]:
    """Return a dependency that reads the id of `what` from the path: 32 hex digits.

    Args:
        name: a pattern of what is taken, too; empty: nothing is.
    """
    form = f"32 hex digits{name and ', or its short name'}"
    pattern = f"^([0-9a-f]{{32}}|{name})$" if name else ID_SCHEMA["pattern"]
    described = Path(
        alias="id", description=f"Of {what}: {form}", json_schema_extra={"pattern": pattern}
    )

    async def read(id_: str = described) -> str:
        if re.fullmatch(pattern, id_) is None:
            raise InvalidInput("id", f"must be {form}")
        return id_

    return read


Shared = Annotated[Edge, Depends(_edge)]
Caller = Annotated[Principal, Depends(_principal)]
Admin = Annotated[Principal, Depends(_admin)]
Session = Annotated[SessionKey, Depends(_session)]
OwnSession = Annotated[SessionKey, Depends(_own_session)]
"""Also one that is being deleted."""
Readable = Annotated[SessionKey, Depends(_readable)]
"""Also a session of the agent's own, which nobody may say anything in."""
User = Annotated[
    str | None,
    Query(
        description="Whose: oneself, or `team`; an admin may name anybody",
        json_schema_extra=PART_SCHEMA,
    ),
]
After = Annotated[int, Query(ge=0, le=SEQ_MAX, description="Continue after this sequence")]
