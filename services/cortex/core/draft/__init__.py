"""A turn in the making: by what kind of session, limits and moment it is decided, and the words it
is made of."""

from .draft import (
    CALL_TIMER,
    INSTANT,
    OUTSIDE,
    PAUSE_TIMER,
    RETRY_TIMER,
    SERVICES,
    Draft,
)

__all__ = [
    "CALL_TIMER",
    "INSTANT",
    "OUTSIDE",
    "PAUSE_TIMER",
    "RETRY_TIMER",
    "SERVICES",
    "Draft",
]
