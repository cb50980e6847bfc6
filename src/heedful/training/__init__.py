"""Training: the training loop, trainer, log and warm start, for every task and model family."""
