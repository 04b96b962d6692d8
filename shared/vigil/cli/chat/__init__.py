"""`vigil chat` and `vigil send`: a conversation on a terminal or in a pipe."""
