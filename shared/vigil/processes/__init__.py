"""Programs that run as processes of their own: how they begin, and how they end with us."""
