"""Sessions in a replica: who works on which, the open session, its log and its history."""
