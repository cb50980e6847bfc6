"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), as encoder-decoder, BERT and GPT."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.architectures.transformer.model import DecoderOnly, EncoderDecoder, EncoderDecoderState, EncoderOnly

__all__ = ["DecoderOnly", "EncoderDecoder", "EncoderDecoderState", "EncoderOnly"]

__getattr__ = public_names(__name__, {"heedful.architectures.transformer.model": __all__})
