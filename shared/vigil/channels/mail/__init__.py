"""The kind `mail`: e-mail both ways, out by SMTP and in by IMAP (docs/mail.md, ADR 50).

What decides is pure and apart: `ids` (threads), `composition` (what is sent), `heads`, `bodies`,
`quotes` and `words` (what came), `authentic` (who wrote it), `place` (how far a mailbox was read).
Around it are `sender`, `mailbox` and `listener`. Only `sender` and `mailbox` need the libraries of
the extra `mail`.
"""
