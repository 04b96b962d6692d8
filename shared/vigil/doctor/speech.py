"""What `vigil doctor` says of what understands voice messages (`[speech] url`).

It isn't asked: providers take money for it.
"""

from __future__ import annotations

from typing import Final

from ..checks import Check, fail, ok
from ..errors import InvalidInput
from ..fields import secrets
from ..settings.config import Settings

WITHOUT: Final = "until then people are told that it couldn't be understood"


def speech(settings: Settings) -> Check | None:
    """Whether it's named as it can be asked, with a key that can be read."""
    section = settings.config.speech
    if not section.url:
        return None
    if not section.url.startswith(("http://", "https://")):
        return fail(f"{section.url} is no http or https URL", "correct speech.url")
    if section.key_file:
        try:
            secrets.of_file("speech.key_file", section.key_file, settings.home)
        except InvalidInput as error:
            return fail(str(error), WITHOUT)
    return ok(f"{section.model} at {section.url} (not asked)")
