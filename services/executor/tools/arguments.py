"""What checks the arguments of the executor's own tools (SPEC P-6). Pure."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput

Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


A = TypeVar("A", bound=Arguments)


def check(kind: type[A], given: dict[str, Any]) -> A:
    """Return the arguments of a call. Raises: InvalidInput."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput("input", str(error)) from error
