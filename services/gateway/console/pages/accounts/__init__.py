"""What is elsewhere and of people: e-mail accounts, contacts, calendars."""
