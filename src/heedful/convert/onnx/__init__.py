"""Export of models to ONNX: graphs, config.json, and programs that run them without torch and heedful."""
