"""Training data: readers of corpora, filters, stores of token ids, batches, and proposals for first recipes."""
