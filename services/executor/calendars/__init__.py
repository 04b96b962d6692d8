"""Calendars of people: kept by one replica, looked into and changed by all."""
