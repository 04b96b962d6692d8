"""What people are told of limits and of the model, beside what is said. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from vigil.contracts.costs import RaiseOffer

BUDGET: Final = "budget"
"""What is told of a cap."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is told of a cap, nearly reached, or reached, or of the model."""

    id: str
    """The same for a cap of an account on a day, so that it is told once."""
    text: str
    what: str = BUDGET
    offer: RaiseOffer | None = None
    """What it says that the person's word does."""
