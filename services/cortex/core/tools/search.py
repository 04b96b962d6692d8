"""Which tools a model is shown from the start, and how it finds the others. Pure.

Each tool that a request shows is paid for in every call of the model, and most conversations use
few. So a profile says which come first (`Profile.first`). Of the others a model knows the names,
and `find_tools` puts those that it needs among its tools, for as long as the session lasts. A call
of a tool that it wasn't shown is carried out as any other: what it may do doesn't depend on that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from vigil.contracts.arguments import Arguments
from vigil.memory.operation import tools as memory_tools

from ..draft.kinds import starters
from ..draft.profile import Profile
from .arguments import FOREIGN
from .declaration import declared

FIND_TOOLS: Final = "find_tools"
AT_ONCE_MAX: Final = 4
"""Tools that one search puts among those that are shown."""
FOUND_MAX: Final = 16
"""Tools that a session keeps: of more the oldest go."""
BEST_SHARE: Final = 0.5
"""The share of the best one's score below which what matches isn't meant."""
OF_NAME: Final = 4
"""A word in a tool's name says so much more of it than one in its description."""
STEM_LENGTH_MIN: Final = 4
"""Letters from which on a word and its longer forms are one: remind, reminder."""
_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY: Final = frozenset(
    {"the", "and", "for", "with", "what", "that", "this", "from", "into", "all", "any", "are"}
    | {"not", "tool", "tools", "use", "can", "you", "how", "its"}
)
"""Words that tell no tool from another."""


def arguments() -> dict[str, type[Arguments]]:
    """Return what each tool of ours takes, but for those of the executor."""
    own = {name: one.arguments for name, one in declared().items()}
    starting = {name: p.starter.arguments for name, p in starters().items() if p.starter}
    memory = {name: one.arguments for name, one in memory_tools().items()}
    return {**own, **memory, **starting}


def is_first(profile: Profile, name: str) -> bool:
    """Whether a tool of ours is shown from the start."""
    return not profile.first or name in profile.first


def search(query: str, described: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the tools that are meant, the best first.

    A tool's score depends on nothing but it, so of those that were found alone the same are found
    again: a turn that is decided anew knows no others. Whatever words an MCP server gives its
    tools, that of ours is among them whose name has a word most.

    >>> texts = {"cron": "Work that recurs.", "goal_list": "List goals.", "goal_split": "Parts."}
    >>> search("goal_split, cron", texts)
    ('goal_split', 'cron')
    >>> search("list my goals", texts), search("recurring work", texts), search("weather", texts)
    (('goal_list', 'goal_split'), ('cron',), ())
    """
    named = [name for name in re.split(r"[\s,;`'\"()]+", query) if name in described]
    if named:
        return tuple(dict.fromkeys(named))[:AT_ONCE_MAX]
    wanted = _words(query) - _EMPTY
    scores = {name: _score(wanted, name, text) for name, text in described.items()}
    least = max(1.0, max(scores.values(), default=0) * BEST_SHARE)
    ranked = [name for _, name in sorted((-score, name) for name, score in scores.items())]
    found = [name for name in ranked if scores[name] >= least][:AT_ONCE_MAX]
    ours = next((name for name in ranked if FOREIGN not in name), "")
    if ours and ours not in found and scores[ours] >= OF_NAME:
        found = [*found[: AT_ONCE_MAX - 1], ours]
    return tuple(found)


def kept(found: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    """Return what a session has found, with what it found now; in the order in which it did, so
    that what a provider keeps of the request stays as it is.

    >>> kept(("a", "b"), ("c", "a"))
    ('a', 'b', 'c')
    """
    now = tuple(more)
    every = tuple(dict.fromkeys((*found, *now)))
    too_many = len(every) - FOUND_MAX
    gone = [name for name in every if name not in now][: max(0, too_many)]
    return tuple(name for name in every if name not in gone)


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if len(word) > 2}


def _score(wanted: set[str], name: str, description: str) -> int:
    of_name, of_text = _words(name), _words(description)
    return sum(OF_NAME if _is_among(word, of_name) else _is_among(word, of_text) for word in wanted)


def _is_among(word: str, words: set[str]) -> bool:
    if word in words:
        return True
    return any(_is_form(word, other) or _is_form(other, word) for other in words)


def _is_form(longer: str, word: str) -> bool:
    return len(word) >= STEM_LENGTH_MIN and longer.startswith(word)
