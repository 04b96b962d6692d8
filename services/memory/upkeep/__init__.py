"""What becomes of memories with time: association, decay, merging, pruning (SPEC M-7)."""
