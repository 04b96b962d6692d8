"""What a CardDAV server has in one address book (RFC 6352): asked for all of it at once.

A question and an answer, and nothing else of DAV: the person names the address book itself. Where
it may go is the guard's; a redirect isn't followed, and the password goes nowhere else.
"""

from __future__ import annotations

from typing import Final
from xml.parsers import expat

import httpx2

from ..errors import VigilError
from ..fields.secrets import Secret
from ..net.bounded import whole
from ..net.client import FAILURES, why_failed
from ..net.ssrf import RequestRefused

ANSWER_BYTES_MAX: Final = 64 * 1024**2
"""Servers send pictures along, though they aren't asked for."""
REPORT: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<C:addressbook-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">
  <D:prop><D:getetag/><C:address-data>
    <C:prop name="VERSION"/><C:prop name="KIND"/><C:prop name="FN"/><C:prop name="N"/>
    <C:prop name="NICKNAME"/><C:prop name="EMAIL"/><C:prop name="TEL"/>
  </C:address-data></D:prop>
  <C:filter/>
</C:addressbook-query>"""
_DATA: Final = "urn:ietf:params:xml:ns:carddav address-data"


class BookAway(VigilError):
    """The address book can't be had now; the text says why, without a secret."""


class BookRefused(BookAway):
    """The server refuses user name or password."""


async def cards_at(
    client: httpx2.AsyncClient, url: str, login: str, secret: Secret | None
) -> bytes:
    """Return all cards of an address book. Raises: BookAway."""
    try:
        return await _asked(client, url, httpx2.BasicAuth(login, secret) if secret else None)
    except RequestRefused as error:
        raise BookAway(f"its address {error.reason}") from error
    except FAILURES as error:
        raise BookAway(why_failed(error)) from error


async def _asked(client: httpx2.AsyncClient, url: str, auth: httpx2.BasicAuth | None) -> bytes:
    headers = {"depth": "1", "content-type": "application/xml; charset=utf-8"}
    request = client.build_request("REPORT", url, content=REPORT, headers=headers)
    response = await client.send(request, auth=auth, stream=True)
    try:
        if response.status_code in (401, 403):
            raise BookRefused("the server refuses user name or password; correct it")
        if response.is_redirect:
            raise BookAway("the server says that it is somewhere else: name that address")
        if response.status_code != 207:
            raise BookAway(f"the server answered {response.status_code}: is it an address book?")
        body = await whole(response.aiter_bytes(), ANSWER_BYTES_MAX)
        if body is None:
            raise BookAway(f"it has more than {ANSWER_BYTES_MAX // 1024**2} MiB")
        return cards_of(body)
    finally:
        await response.aclose()


def cards_of(answer: bytes) -> bytes:
    """Return the cards in an answer, one after the other. Raises: BookAway.

    >>> cards_of(b'<a xmlns="urn:ietf:params:xml:ns:carddav"><address-data>x</address-data></a>')
    b'x\\r\\n'
    """
    found = _Cards()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = found.declared
    parser.StartElementHandler = found.begun
    parser.EndElementHandler = found.ended
    parser.CharacterDataHandler = found.read
    try:
        parser.Parse(answer, True)
    except expat.ExpatError as error:
        raise BookAway("the server's answer is no XML") from error
    return "".join(f"{card}\r\n" for card in found.cards).encode()


class _Cards:
    """Takes the cards out of an answer as it's read."""

    def __init__(self) -> None:
        self.cards: list[str] = []
        self._parts: list[str] | None = None

    def declared(self, *_: object) -> None:
        raise BookAway("the server's answer declares types of its own")

    def begun(self, name: str, _: object) -> None:
        if name == _DATA:
            self._parts = []

    def read(self, text: str) -> None:
        if self._parts is not None:
            self._parts.append(text)

    def ended(self, name: str) -> None:
        if name == _DATA and self._parts is not None:
            self.cards.append("".join(self._parts).strip())
            self._parts = None
