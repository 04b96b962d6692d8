"""The projector of signals (SPEC C-4): it follows the log, and appends to SIGNALS what that tells.

What each record gives is in `vigil.signals`. `tail` finds out how far SIGNALS got, `projector`
moves it on, `patterns` looks at the newest signals of each person.
"""

from .projector import SignalProjector

__all__ = ["SignalProjector"]
