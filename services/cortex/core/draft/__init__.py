"""A turn in the making, and the words it is made of: what went in, what is told to whom."""

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
