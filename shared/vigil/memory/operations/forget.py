"""Never recall a memory again."""

from __future__ import annotations

from typing import Annotated, Final

from ...errors import NotFound
from ...subjects import Scope
from ..operation import McpTool, Operation, Route
from ..questions import Id, Ids, Question, Reply, described
from ..view import Pick


class Forget(Question, frozen=True, kw_only=True):
    """Never recall these again. Those that aren't there are counted, not refused."""

    ids: Annotated[Ids, described("Of a memory: 32 hex digits, as recalled.")]
    by: str


class Forgotten(Reply, frozen=True, kw_only=True):
    """How many are never recalled again."""

    forgotten: int
    missing: int = 0


def one(scope: Scope, done: Forgotten) -> Forgotten:
    """Tell the outside, which names one at a time. Raises: NotFound."""
    if not done.forgotten:
        raise NotFound("there is no memory with that id")
    return done


_picks: Final = {"id": Pick(field="ids", kind=Id, is_one=True)}
OPERATION: Final = Operation(
    name="forget",
    question=Forget,
    reply=Forgotten,
    show=one,
    route=Route(
        name="forget_memory",
        text="Forget a memory: no recall and no list shows it again.",
        method="DELETE",
        path="/api/memories/{id}",
        errors=(404,),
        picks=_picks,
    ),
    mcp=McpTool(
        name="memory_forget",
        title="Forget",
        text=(
            "Forget a memory for good: nothing shows it again, and this can't be undone. Only when "
            "the person wants it forgotten."
        ),
        picks=_picks,
        is_destructive=True,
        is_idempotent=True,
    ),
)
