"""Subjects of what was said in a session before it was imported. Pure.

It is in the transcript, and in nothing that anybody acts on: no wake, order or signal comes of it.
"""

from __future__ import annotations

from ..subjects import Scope, SessionKey


def all_of(key: SessionKey) -> str:
    """Match what was said before a session was imported.

    >>> all_of(SessionKey("ann", "vigil", "t1"))
    'session.vigil.ann.t1.past.said.*'
    """
    return of_role(key, "*")


def of_role(key: SessionKey, role: str) -> str:
    """Return the subject of what ``user`` or ``agent`` said."""
    return f"{key.root}.past.said.{role}"


def by_person(whose: Scope, thread: str = "*") -> str:
    """Match what people said in conversations, also before these were imported.

    >>> by_person(Scope("*", "ann"))
    'session.*.ann.*.*.said.user'
    """
    return f"session.{whose.agent}.{whose.owner}.{thread}.*.said.user"


def of_owner(whose: Scope) -> str:
    """Return the beginning of all subjects of conversations."""
    return f"session.{whose.agent}.{whose.owner}.*"


def by_agent(whose: Scope) -> str:
    """Match what agents said in conversations before these were imported.

    >>> by_agent(Scope("*", "ann"))
    'session.*.ann.*.past.said.agent'
    """
    return f"{of_owner(whose)}.past.said.agent"


def said(whose: Scope) -> str:
    """Match what anybody said in conversations, also before these were imported.

    >>> said(Scope("*", "ann"))
    'session.*.ann.*.*.said.*'
    """
    return f"{of_owner(whose)}.*.said.*"


def is_by_person(subject: str) -> bool:
    """Whether what is there a person said: of what an agent said, the id is no such word.

    >>> is_by_person("session.vigil.ann.t1.in.said.user")
    True
    """
    return subject.endswith(".said.user")


def said_in(key: SessionKey) -> str:
    """Match what the person said in a conversation, also before it was imported."""
    return by_person(key.scope, key.thread)


def is_past(subject: str) -> bool:
    """Whether what is there was said before it was imported.

    >>> is_past("session.vigil.ann.t1.past.said.user"), is_past("session.vigil.ann.t1.in.said.user")
    (True, False)
    """
    return ".past.said." in subject
