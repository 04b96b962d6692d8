"""Where what a channel has to cut is seen whole: a page of the console. Pure."""

from __future__ import annotations

from ...contracts import Said


def conversation_of(said: Said, console_url: str) -> str:
    """Return the page of a message's conversation; empty: nobody said where the console is."""
    return _page(f"conversations/{said.session_key}", console_url)


def request_of(said: Said, console_url: str) -> str:
    """Return the page where the request that a message shows is decided; empty: there is none."""
    return _page(f"inbox/{said.asks}", console_url) if said.asks else ""


def rest_of(said: Said, console_url: str) -> str:
    """Return what stands at the end of a message that is cut: where all of it is.

    >>> from datetime import UTC, datetime
    >>> said = Said(id="e", session_key="ann:vigil:main", text="hi", at=datetime.now(UTC),
    ...             caused_by="", turn_seq=1)
    >>> rest_of(said, "https://home.example/vigil/")
    '… (cut; all of it: https://home.example/vigil/console/conversations/ann:vigil:main )'
    >>> rest_of(said, "")
    '… (cut; all of it is in the conversation, in the console)'
    """
    page = request_of(said, console_url) or conversation_of(said, console_url)
    # With a space behind it no program takes the bracket for a part of the address.
    return (
        f"… (cut; all of it{f': {page} ' if page else ' is in the conversation, in the console'})"
    )


def _page(path: str, console_url: str) -> str:
    return f"{console_url.rstrip('/')}/console/{path}" if console_url else ""
