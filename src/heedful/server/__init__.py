"""HTTP server: an engine that runs models, the apps that use it, and guards against bad requests."""
