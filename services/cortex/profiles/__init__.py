"""The kinds of sessions: one module each, whose `PROFILE` says all there is to it. Pure.

What sessions of a kind are called for people stands in `vigil.contracts.session_kinds`, which the
gateway reads, too.
"""
