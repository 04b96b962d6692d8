"""Recall: the candidates of a question, and how well each fits (SPEC M-3)."""
