"""Records of people's own mailboxes. Pure."""

from __future__ import annotations

from .came import (
    MAIL_CLASSES,
    CameMail,
    MailClass,
    MailedInvitation,
    MailEntry,
    MailToRead,
    is_read_by_model,
)

__all__ = [
    "MAIL_CLASSES",
    "CameMail",
    "MailClass",
    "MailEntry",
    "MailToRead",
    "MailedInvitation",
    "is_read_by_model",
]
