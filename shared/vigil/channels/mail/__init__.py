"""The kind `mail`: e-mail both ways, out by SMTP and in by IMAP (docs/mail.md, ADR 50).

What decides is pure and apart: `composition` (what is sent), `words` (what came), `authentic` (who
wrote it), and what `vigil.mail` has for all who deal with mail. Around it are `sender` and
`listener`, which import the libraries of mail.
"""
