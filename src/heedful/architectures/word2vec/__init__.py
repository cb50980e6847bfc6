"""word2vec: settings, model, and the words, phrases and windows that it learns from."""
