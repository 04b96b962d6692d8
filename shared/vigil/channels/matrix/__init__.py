"""The kind `matrix`: rooms of Matrix both ways, by the client-server API (docs/matrix.md, ADR 56).

What decides is pure and apart: `happenings` (what came), `composition` (what is sent), `verdicts`
(what an answer means). Around it are `wire`, `sender` and `listener`, which need the libraries of
the extra `matrix`.
"""
