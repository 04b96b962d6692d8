"""Commands about what is elsewhere and of people: accounts of mail, lists of contacts."""
