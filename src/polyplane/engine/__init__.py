"""Training: the rows (`Data`), the algorithm (`Method`), its state (`State`) and the training loop (`Run`)."""
