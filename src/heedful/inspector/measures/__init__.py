"""Analyses of a model: attention heads, logit lens, logit attribution, beam search, embeddings and answers."""
