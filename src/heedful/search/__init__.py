"""Decoding: beam search, greedy search and sampling over any `DecodingState`; `predictors` use them."""
