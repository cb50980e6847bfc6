"""Decoding for `heedful.predictors`: beam search, greedy search and sampling over any `DecodingState`."""
