"""Models over HTTP: one thread that computes, a queue before it, and whoever asks is checked first."""
