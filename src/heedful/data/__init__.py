"""Training data: readers, preparation and stores, the batches of each epoch, and proposals for first recipes."""
