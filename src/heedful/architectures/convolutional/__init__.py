"""Convolutional models: ConvS2S, and its encoder or decoder alone."""
