"""Training data: readers, preparation and stores, and the batches of each epoch."""
