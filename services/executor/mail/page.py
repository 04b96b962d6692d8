"""The text of a mail that is HTML alone, made by a process of its own."""

from __future__ import annotations

import asyncio
from typing import Final

from vigil.mail.bodies import read_mail
from vigil.mail.quotes import marked
from vigil.net.page_text import text_of_page

from ..sandbox.box import python

PAGE_S: Final = 5.0
NO_PAGE: Final = "[its text can't be told]"


async def page_of(data: bytes) -> str:
    """Return that text; empty: the mail has other text."""
    mail = await asyncio.to_thread(read_mail, data)
    if not mail.html:
        return ""
    made = await text_of_page(marked(mail.html), "", python(), PAGE_S)
    return NO_PAGE if made is None else made
