"""An endpoint on loopback that understands speech, as OpenAI's interface for transcriptions has it.

It refuses what the published interface doesn't take: other fields, a file whose ending says no
sound, a wrong key.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from tests.support.on_loopback import served

KEY: Final = "sk-of-the-speech-server"
ENDINGS: Final = frozenset({"flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"})
FIELDS: Final = frozenset({"file", "model", "language", "response_format"})
OGG: Final = b"OggS\0\x02" + bytes(40)
"""As the recording of a voice message begins."""


class SpeechServer:
    """Knows of each sound what is said in it."""

    def __init__(self) -> None:
        self.url = ""
        self.words: dict[bytes, str] = {}
        self.asked: list[dict[str, str]] = []
        """Of each request its fields, without the sound."""
        self.status = 200
        self.is_silent = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[SpeechServer]:
        app = web.Application()
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        async with served(app) as url:
            self.url = f"{url}/v1"
            yield self

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        sound = form.get("file")
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Incorrect API key"}}, status=401)
        if not isinstance(sound, web.FileField) or set(form) - FIELDS:
            return web.json_response({"error": {"message": "unknown fields"}}, status=400)
        if sound.filename.rpartition(".")[2] not in ENDINGS:
            return web.json_response({"error": {"message": "Unrecognized file format"}}, status=400)
        self.asked.append({name: str(value) for name, value in form.items() if name != "file"})
        if self.is_silent:
            await asyncio.Event().wait()
        if self.status != 200:
            return web.json_response({"error": {"message": "later"}}, status=self.status)
        return web.json_response({"text": self.words[sound.file.read()]})
