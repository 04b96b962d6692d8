"""Which of two memories is shown, if one updates the other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def current(
    order: Sequence[int],
    newest: Mapping[int, int],
    words_in: Callable[[int], frozenset[str]],
    limit: int,
) -> dict[int, int]:
    """Return what is shown, best first -> what it was found by: itself, or what it updates.

    What was updated is behind the newest if it tells something of the question that the newest
    doesn't: two invoices that differ in their number aren't one. Else it's left out.

    Args:
        order: numbers of memories, best first.
        newest: what was updated -> the newest that updates it.
        words_in: which words and days of the question stand in a memory.

    >>> words = {1: frozenset(["boat"]), 2: frozenset(["boat", "7"]), 3: frozenset(["boat"])}
    >>> current([1, 2], {1: 3, 2: 3}, words.__getitem__, 5)
    {3: 1, 2: 2}
    """
    shown: dict[int, int] = {}
    for num in order:
        if len(shown) >= limit:
            break
        new = newest.get(num, num)
        shown.setdefault(new, num)
        if new != num and len(shown) < limit and words_in(num) - words_in(new):
            shown.setdefault(num, num)
    return shown
