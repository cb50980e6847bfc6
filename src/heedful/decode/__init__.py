"""From a model to its outputs: search strategies over anything that can take a step."""
