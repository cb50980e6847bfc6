"""Decoding: beam search, greedy search, sampling, and the predictors that use them (translator, generator, filler)."""
