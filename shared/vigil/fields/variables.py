"""Which variables set what: ``VIGIL_SECTION__KEY``, and those of the seeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
