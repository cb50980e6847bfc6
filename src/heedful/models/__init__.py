"""Models: assemblies of the parts in `heedful.nn`."""

from heedful.models.transformer import EncoderDecoder, build, load_weights, weights

__all__ = ["EncoderDecoder", "build", "load_weights", "weights"]
