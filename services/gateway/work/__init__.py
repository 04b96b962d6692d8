"""Jobs, approvals, tools, dead letters: what agents do, for people to see and decide."""
