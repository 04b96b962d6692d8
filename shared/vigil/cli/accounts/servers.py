"""What it takes to reach the servers of a mail account: options, and their keys in a section."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vigil.errors import InvalidInput
from vigil.net.endpoint import read_endpoint

PasswordFile = Annotated[
    Path | None, typer.Option(help="A file with the password; read at each log-in.")
]
TokenCommand = Annotated[
    list[str] | None,
    typer.Option(metavar="WORD", help="A program that prints a token; once for each word."),
]
StartTls = Annotated[
    bool, typer.Option("--starttls", help="Encrypt by STARTTLS, instead of from the start.")
]


def server_of(what: str, where: str, *, starttls: bool) -> dict[str, Any]:
    """Return the keys of a server. Raises: BadParameter.

    Args:
        what: `smtp` or `imap`: the option, and how the keys begin.
        where: HOST[:PORT].

    >>> server_of("imap", "mail.example:143", starttls=True)
    {'imap_host': 'mail.example', 'imap_port': 143, 'imap_security': 'starttls'}
    """
    try:
        host, port = read_endpoint(where)
    except InvalidInput as error:
        raise typer.BadParameter(f"--{what}: {error.reason}") from error
    security = "starttls" if starttls else ""
    return {f"{what}_host": host, f"{what}_port": port, f"{what}_security": security}


def login_of(password_file: Path | None, token_command: list[str] | None) -> dict[str, Any]:
    """Return the keys of what an account logs in with."""
    return {
        "password_file": str(password_file.expanduser().absolute()) if password_file else "",
        "token_command": token_command or [],
    }
