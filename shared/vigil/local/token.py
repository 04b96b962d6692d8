"""The token of a home, which `vigil up` made and local programs use."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError
from ..texts.trouble import reason_of


def token_file(home: Path) -> Path:
    """Where the token that `vigil up` made is kept."""
    return home / "token"


def read_token(home: Path) -> str | None:
    """Return the token of this home, or None. Raises: ConfigError, if it can't be read."""
    try:
        return token_file(home).read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{token_file(home)} can't be read: {reason_of(error)}") from error
