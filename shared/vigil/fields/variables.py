"""Which variables set what: ``VIGIL_SECTION__KEY``, and those of the seeds; and which of them, and
which settings, mean nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SEED_VARIABLES: Final = {
    "AUTONOMY_ENABLED": ("autonomy", "enabled"),
    "AUTONOMY_MAX_CONSECUTIVE": ("autonomy", "max_consecutive"),
    "AUTONOMY_COOLDOWN_MS": ("autonomy", "cooldown_ms"),
    "VIGIL_PORT": ("gateway", "port"),
    "VIGIL_MODEL": ("model", "main"),
    "NATS_URL": ("nats", "url"),
    "QDRANT_URL": ("memory", "qdrant_url"),
}
WITHOUT_MEANING: Final = ("TIMER_POLL_INTERVAL_MS", "EFFECT_POLL_INTERVAL_MS")
RETIRED: Final[Mapping[str, Mapping[str, str]]] = {
    "memory": dict.fromkeys(
        (
            *("weight_text", "weight_words", "weight_gist", "weight_neighbours", "weight_thread"),
            *("weight_names", "weight_speaker", "weight_date", "weight_question", "weight_brief"),
            *("weight_repeat", "weight_graph", "weight_recency", "recency_half_life_days"),
            *("weight_importance", "weight_taint"),
        ),
        "it is a constant of how memories are found",
    ),
}
"""Settings that were, by section and key, with the reason. A file that has one still holds."""
_NOT_SETTINGS: Final = ("VIGIL_HOME", "VIGIL_CRASH_AT", "VIGIL_URL", "VIGIL_TOKEN")


def overlay(
    environ: Mapping[str, str], problems: list[str]
) -> list[tuple[tuple[str, str], str, str]]:
    """Return section and key, value and name of each variable that sets something."""
    found: list[tuple[tuple[str, str], str, str]] = []
    for name, value in sorted(environ.items()):
        if name in _SEED_VARIABLES:
            found.append((_SEED_VARIABLES[name], value, name))
        elif name.startswith("VIGIL_") and name not in _NOT_SETTINGS:
            section, separator, key = name.removeprefix("VIGIL_").lower().partition("__")
            if separator:
                found.append(((section, key), value, name))
            else:
                problems.append(f"{name}: no such setting (VIGIL_SECTION__KEY)")
    return found


def remarks(environ: Mapping[str, str]) -> list[str]:
    """Return what there is to say of variables that mean something to other programs alone."""
    return [
        f"{name} has no meaning here: the bus pushes, nothing is polled"
        for name in WITHOUT_MEANING
        if name in environ
    ]


def remark(section: str, key: str) -> str:
    """Return what there is to say of such a setting; empty: it is none.

    >>> remark("memory", "weight_text")
    'memory.weight_text has no meaning any more: it is a constant of how memories are found'
    >>> remark("memory", "weight_vector")
    ''
    """
    why = RETIRED.get(section, {}).get(key)
    return f"{section}.{key} has no meaning any more: {why}" if why else ""


def take_out(sections: Mapping[str, Any]) -> list[str]:
    """Take such settings out of what a file or variable says; return a remark on each.

    >>> said = {"memory": {"weight_text": 2, "pause_s": 5}}
    >>> len(take_out(said)), said
    (1, {'memory': {'pause_s': 5}})
    """
    found: list[str] = []
    for section, keys in RETIRED.items():
        said = sections.get(section)
        if isinstance(said, dict):
            for key in sorted(keys.keys() & said.keys()):
                del said[key]
                found.append(remark(section, key))
    return found
