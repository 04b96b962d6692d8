"""How to log in: a password, a file with one, or a program that prints a token.

What is read is never kept, shown or logged. What a server refused once isn't shown to it again for
a while: asked again and again, servers lock accounts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from ..clock import Clock
from ..errors import InvalidInput, VigilError
from ..fields import environ, secrets
from ..fields.secrets import Secret

COMMAND_TIMEOUT_S: Final = 30.0
TOKEN_LENGTH_MAX: Final = 16_384
REFUSED_FOR_S: Final = 6 * 3600.0
"""How long a server isn't asked again with what it refused."""


class NoAccess(VigilError):
    """There is no password or token now. The text says why, and holds none."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Where the secret of an account is."""

    user: str
    password: str
    password_file: str
    token_command: tuple[str, ...]
    home: Path

    def __repr__(self) -> str:
        return f"Access({self.user!r}, <hidden>)"

    @property
    def is_token(self) -> bool:
        """Whether it logs in by XOAUTH2."""
        return bool(self.token_command)

    def check(self) -> None:
        """Raises: InvalidInput: there is no secret, or more than one, or its file can't be read."""
        if not self.token_command:
            secrets.of_section("password", self.password, self.password_file, self.home)
        elif self.password or self.password_file:
            raise InvalidInput("token_command", "is given beside a password: leave one away")

    async def secret(self) -> Secret:
        """Return the password or a token as it is now. Raises: NoAccess."""
        if self.token_command:
            return await self._token()
        try:
            return secrets.of_section("password", self.password, self.password_file, self.home)
        except InvalidInput as error:
            raise NoAccess(str(error)) from error

    async def _token(self) -> Secret:
        import asyncio
        import subprocess

        from ..processes.process import start

        program = self.token_command[0]
        try:
            process = await start(
                *self.token_command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.home if self.home.is_dir() else None,
                env=environ.of_program(os.environ),
            )
        except OSError as error:
            raise NoAccess(f"token_command: {program}: {error.strerror}") from error
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                out, _ = await process.communicate()
        except TimeoutError as error:
            raise NoAccess(f"token_command: {program}: nothing within 30 s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        token = out.decode("ascii", "replace").strip()
        if process.returncode or not token.isprintable() or " " in token or not token:
            raise NoAccess(f"token_command: {program}: it printed no token")
        if len(token) > TOKEN_LENGTH_MAX:
            raise NoAccess(f"token_command: {program}: it printed more than a token")
        return Secret(token)


class RefusedSecret:
    """What a server refused, so that it isn't asked the same again soon."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._secret: str | None = None
        self._until_s = 0.0

    @property
    def is_noted(self) -> bool:
        return self._secret is not None

    def clear(self) -> None:
        self._secret = None

    def note(self, secret: str) -> None:
        self._secret = secret
        self._until_s = self._clock.monotonic() + REFUSED_FOR_S

    def waits_s(self, secret: str) -> float:
        """Return how long not to ask with a secret; 0.0: at once."""
        if secret != self._secret:
            return 0.0
        return max(self._until_s - self._clock.monotonic(), 0.0)
