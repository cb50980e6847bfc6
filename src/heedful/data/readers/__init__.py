"""Readers of texts: files and tables as lines, pairs, documents, labelled or tagged texts, and filters of them."""
