"""How any method is trained: rows (`Data`), algorithm (`Method`), what it has learned (`State`), the loop (`Run`)."""
