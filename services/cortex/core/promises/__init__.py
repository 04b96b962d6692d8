"""Answers that promise what nothing does or plans. Pure."""
