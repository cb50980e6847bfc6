"""Layers: the parts that every model is assembled from."""
