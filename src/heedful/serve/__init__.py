"""HTTP server of the inspector: its API, the worker thread that runs models, and guards against bad requests."""
