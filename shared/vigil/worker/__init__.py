"""What a service needs that carries out what turns ask for: lanes, dead letters, trying again."""
