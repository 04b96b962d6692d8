"""Records of people's own mailboxes. Pure."""

from __future__ import annotations

from .came import (
    MAIL_CLASSES,
    CameMail,
    MailClass,
    MailedInvitation,
    MailedOffer,
    MailedOffers,
    MailEntry,
    MailToRead,
    OfferedMail,
    is_read_by_model,
)

__all__ = [
    "MAIL_CLASSES",
    "CameMail",
    "MailClass",
    "MailEntry",
    "MailToRead",
    "MailedInvitation",
    "MailedOffer",
    "MailedOffers",
    "OfferedMail",
    "is_read_by_model",
]
