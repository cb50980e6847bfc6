"""HTTP server: an engine that runs models, the apps that ask it, and guards against bad requests."""
