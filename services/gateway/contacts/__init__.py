"""Whom people know: their lists, refreshed by one replica, and asked about."""
