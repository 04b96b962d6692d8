"""What a mail is called where tools name it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vigil.errors import InvalidInput

if TYPE_CHECKING:
    from vigil.mail.mailbox import MailSeen


class MailId(NamedTuple):
    """A mail in a folder of a mailbox."""

    mailbox: str
    validity: int
    uid: int
    folder: str = ""
    """Empty: the one that is followed."""

    def __str__(self) -> str:
        parts = (self.mailbox, str(self.validity), str(self.uid), self.folder)
        return ":".join(parts[: 4 if self.folder else 3])

    @classmethod
    def parse(cls, text: str) -> MailId:
        """Read an id. Raises: InvalidInput.

        >>> MailId.parse("work:17:3:Archive/2026")
        MailId(mailbox='work', validity=17, uid=3, folder='Archive/2026')
        """
        name, validity, uid, folder = (*text.strip().split(":", 3), "", "", "")[:4]
        if not (validity.isascii() and validity.isdigit() and uid.isascii() and uid.isdigit()):
            raise InvalidInput("id", "is none that email_search told")
        return cls(name, int(validity), int(uid), folder)


class FoundMail(NamedTuple):
    """A mail that was found."""

    id: MailId
    seen: MailSeen
    is_unread: bool
