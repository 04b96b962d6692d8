"""What recurs: when rows are due, and which rows there may be."""
