"""What a home needs before anything runs: its files, its credentials, its token.

The token of the first start is an admin's, for the person who owns the machine; its text is kept
in a file that only the owner may read, and the broker keeps its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from ..bus.bus import Bus
from ..bus.connection import UNKNOWN
from ..bus.kv import KeyValue
from ..channels.push.section import FIRST_WRITTEN, missing_libraries
from ..errors import ConfigError, Unavailable
from ..settings import credentials, tokens
from ..settings.config import Settings
from ..settings.sections import Person
from ..topology import ADMIN
from ..upgrade import store_format
from .token import read_token, token_file

log = structlog.get_logger("vigil.home")

WAIT_S: Final = 5.0
"""How long a broker may be away when a command needs it."""
RESTORING: Final = "restoring"
"""The file that a home has while what was backed up is brought back into it."""
OWNER: Final = "me"
"""The user of the token that the first start makes."""


FIRST_FILE: Final = """\
# Vigil's settings. Every default is in the documentation; what is here overrides it, and the
# environment (VIGIL_SECTION__KEY) overrides this.

[autonomy]
# Let agents follow up on their own. Limits: 3 messages in a row, 15 s apart, until you write.
enabled = true

# [model]
# main = "claude-sonnet-5-5"   # with ANTHROPIC_API_KEY set; without a key: "rehearsal"

# [budget]
# daily_usd = 50   # of all agents, a day; then only models with models.NAME.prices are asked

[person]
timezone = "{timezone}"
language = "{language}"
# quiet_hours = "22:00-07:00"
"""


def ensure_home(settings: Settings, person: Callable[[], Person] = Person) -> bool:
    """Make the home, and a first vigil.toml; return whether the file is new.

    Args:
        person: tells what is written of the person, if it is.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.file.exists():
        return False
    one = person()
    text = FIRST_FILE.format(timezone=one.timezone, language=one.language)
    if not missing_libraries():
        text += FIRST_WRITTEN
    settings.file.touch(mode=0o600)  # secrets of hooks and channels may come into it
    settings.file.write_text(text, "utf-8")
    return True


def check_whole(home: Path) -> None:
    """Refuse to work in a home whose restore was interrupted, or that a newer Vigil used.

    Raises: ConfigError.
    """
    if (home / RESTORING).exists():
        raise ConfigError(
            f"a restore into {home} was interrupted: run the same `vigil restore` again"
        )
    store_format.check_home(home)


async def connect_admin(settings: Settings, url: str) -> Bus:
    """Connect as the one who creates streams.

    Raises:
        Unavailable: no broker, or one that doesn't know our credential.
    """
    seed = credentials.load(settings.credentials, ADMIN)
    try:
        return await Bus.connect(url, role=ADMIN, seed=seed, wait_s=WAIT_S)
    except Unavailable as error:
        if not settings.config.nats.url or UNKNOWN not in str(error):
            raise
        raise Unavailable(
            f"{error}, the admin's of this home ({settings.credentials}/{ADMIN}.seed): "
            "`vigil provision --credentials-only --write-nats-conf FILE` writes the "
            "configuration that it must run with."
        ) from error


async def ensure_token(admin: Bus, settings: Settings, *, user: str = OWNER) -> str:
    """Return the token that this home keeps; make one if it's missing or unknown."""
    text = read_token(settings.home)
    if text is not None:
        if await KeyValue(admin, tokens.BUCKET).get(tokens.token_id_of(text)) is not None:
            return text
        log.info("the token is unknown to this broker: making a new one", action="up.token")
    text = await tokens.create(
        admin, user=user, now=datetime.now(UTC), is_admin=True, name="made by vigil up"
    )
    credentials.write_private(token_file(settings.home), f"{text}\n".encode())
    return text


def prepare_home(settings: Settings, person: Callable[[], Person]) -> Iterator[str]:
    """Make the home; yield what a person should be told.

    Args:
        person: tells what holds for the person at the first start.
    """
    if ensure_home(settings, person):
        yield (
            f"First start: wrote {settings.file}. It turns autonomy ON: agents may follow up on "
            "their own, at most 3 messages in a row, until you write. Set enabled = false there "
            "to turn it off."
        )
    yield from settings.remarks
