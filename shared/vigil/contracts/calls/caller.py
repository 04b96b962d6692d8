"""Tools that a program brings along with what it says, and runs itself."""

from __future__ import annotations

from typing import Final

from ..base import Record
from ..tools import Tool

CALLER: Final = "caller"
"""In the place of a server, in the names of such tools: no MCP server may be called so."""
CALLER_PREFIX: Final = f"{CALLER}__"


class CallerTools(Record, frozen=True, kw_only=True):
    """The tools of the program through which something was said, for its answer alone."""

    tools: tuple[Tool, ...]
    """Their names begin with ``caller__``, so that none has the name of one of ours."""
    is_one_by_one: bool = False
    """Whether one answer of the model may call but one of them."""


class CallerResult(Record, frozen=True, kw_only=True):
    """What a program says of a call of a tool of its own."""

    call_id: str
    """The id of the open call (`OpenCall.effect_id`)."""
    content: str
