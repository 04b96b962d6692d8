"""Mail: what is read of a mailbox and of what lies in it, and how a mail is handed to a server.

The channel `mail` (`vigil.channels.mail`) and the agent's view of a person's mailbox share it. What
decides is pure and apart: `heads`, `bodies`, `quotes` (what a mail says), `ids` (threads), `place`
(how far a mailbox was read). Around it are `access` (logging in), `mailbox` (IMAP) and `smtp`; only
the last two import the libraries of mail.
"""
