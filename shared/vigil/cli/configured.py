"""The configuration for commands that only look: a mistake elsewhere takes nothing away."""

from __future__ import annotations

from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.config import Settings

from . import output


def settings(of: str = "") -> Settings:
    """Return the settings as far as they are right; what is wrong is told on stderr.

    Args:
        of: the setting that is looked at, as `gateway.port`.

    Raises:
        ConfigError: that one is wrong; or the file can't be read.
    """
    found = config.load_right()
    if any(of == one or of.startswith(f"{one}.") for one in found.left_out):
        raise ConfigError("\n".join(found.problems))
    tell(found)
    return found


def tell(found: Settings) -> None:
    """Tell on stderr what is wrong."""
    for problem in found.problems:
        output.message(f"vigil: {problem}")
