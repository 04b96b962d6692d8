"""What a model made for itself, as its signed thinking: no other may get it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from vigil.contracts import Block, OpaqueBlock

from ..model import ModelAnswer, ModelRequest


def left_out(request: ModelRequest) -> ModelRequest:
    """Leave out of a request for the fallback what is signed by the model that is away."""
    rows = [replace(row, blocks=_open(row.blocks)) for row in request.rows]
    return replace(request, rows=tuple(row for row in rows if row.blocks))


def of_fallback(answer: ModelAnswer) -> ModelAnswer:
    """Mark an answer; what the fallback signed would be refused by the model that comes back."""
    return replace(answer, blocks=_open(answer.blocks), is_fallback=True)


def _open(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if not isinstance(block, OpaqueBlock))
