"""Any endpoint that speaks OpenAI's ``POST {base}/audio/transcriptions``: a provider's, or one of
your own.

What is said is sent there: that is what setting `[speech] url` means. It may be in the person's own
network. Nothing is sent on to where an answer leads.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from vigil.errors import ConfigError, InvalidInput
from vigil.fields import secrets
from vigil.net.bounded import whole
from vigil.net.client import FAILURES, guarded_client, why_failed
from vigil.net.guard import GuardedTransport
from vigil.net.ssrf import RequestRefused, rules_to
from vigil.settings.sections import SpeechSection
from vigil.texts.glyphs import without_hidden

from .sounds import ending_of

ANSWER_BYTES_MAX: Final = 1024 * 1024
FIELD: Final = "file"


class _Transcript(msgspec.Struct, frozen=True):
    text: str


class Transcriber:
    """Asks one endpoint.

    Raises: ConfigError, its URL can't be used.
    """

    def __init__(
        self, section: SpeechSection, home: Path, *, ports_never: tuple[int, ...] = ()
    ) -> None:
        self._section = section
        self._home = home
        try:
            rules = rules_to(section.url, ports_never)
        except RequestRefused as error:
            raise ConfigError(f"speech.url: {error.reason}") from error
        # What takes too long is told by one clock, that of `words`.
        self._client = guarded_client(GuardedTransport(rules), timeout=2 * section.timeout_s)

    async def close(self) -> None:
        await self._client.aclose()

    async def words(self, sound: bytes, language: str) -> str:
        """Return what is said.

        Args:
            language: of whom it's from, as `de-AT`; empty: it isn't known.

        Raises:
            InvalidInput: why it isn't understood.
        """
        ending = ending_of(sound)
        if not ending:
            raise InvalidInput(FIELD, "is no sound that can be read")
        try:
            async with asyncio.timeout(self._section.timeout_s):
                body = await self._ask(sound, f"voice.{ending}", language.partition("-")[0])
            text = msgspec.json.decode(body, type=_Transcript).text
        except TimeoutError:
            raise _failed(f"no answer within {self._section.timeout_s:g} s") from None
        except RequestRefused as error:
            raise _failed(f"the endpoint {error.reason}") from error
        except FAILURES as error:
            raise _failed(why_failed(error)) from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise _failed("the endpoint's answer has no text") from error
        words = " ".join(without_hidden(text).split())
        if not words:
            raise InvalidInput(FIELD, "has no words that could be understood")
        return words

    async def _ask(self, sound: bytes, name: str, language: str) -> bytes:
        """Return the endpoint's answer. Raises: InvalidInput, RequestRefused, FAILURES."""
        fields = {"model": self._section.model, "response_format": "json"}
        if language:
            fields["language"] = language
        headers = {}
        if self._section.key_file:
            headers["authorization"] = f"Bearer {self._key()}"
        url = f"{self._section.url.rstrip('/')}/audio/transcriptions"
        files = {FIELD: (name, sound)}
        async with self._client.stream(
            "POST", url, data=fields, files=files, headers=headers
        ) as response:
            if response.status_code != 200:
                raise _failed(f"the endpoint answered {response.status_code}")
            body = await whole(response.aiter_bytes(), ANSWER_BYTES_MAX)
        if body is None:
            raise _failed(f"the endpoint's answer has more than {ANSWER_BYTES_MAX} bytes")
        return body

    def _key(self) -> str:
        """Return it as its file has it now. Raises: InvalidInput, without where that is."""
        try:
            return secrets.of_file("speech.key_file", self._section.key_file, self._home)
        except InvalidInput as error:
            raise _failed("the endpoint's key can't be read") from error


def _failed(reason: str) -> InvalidInput:
    return InvalidInput(FIELD, f"couldn't be understood: {reason}")
