"""Captions: text about images or audio from a trained encoder-decoder, with the same searches as translation."""

from collections.abc import Iterable, Iterator
from typing import Unpack, overload

import numpy as np
from torch import Tensor

from heedful.architectures.model import SourceToTarget
from heedful.config.options import DecodeOptions
from heedful.config.schema import DecodeConfig, Recipe
from heedful.predictors.media_reader import Input, MediaReader
from heedful.predictors.predictor import Done, Predictor, check_one_text
from heedful.predictors.translator import Alternative
from heedful.search.beam import check_beam, search
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer_pair import TokenizerPair


class Captioner(Predictor[SourceToTarget, str]):
    """Captioner: an encoder-decoder from images or audio to text. A text depends only on its own file."""

    reads_files = True

    def __init__(self, model: SourceToTarget, tokenizers: TokenizerPair, recipe: Recipe) -> None:
        super().__init__(model)
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.target
        self.config: DecodeConfig = recipe.decode
        self.reader = MediaReader(model, recipe)

    def with_options(self, **options: Unpack[DecodeOptions]) -> "Captioner":
        """Create a captioner that shares this model, with other settings for decoding."""
        return self._configured(options)

    @overload
    def caption(self, files: Input, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def caption(self, files: Iterable[Input], **options: Unpack[DecodeOptions]) -> list[str]: ...
    def caption(self, files: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Generate the text about a file, or the texts about several files, in order.

        Args:
            files: A file name, its bytes, or an array of pixels (H W C, 8 bits) or of samples (N) at the recipe's rate;
                or an iterable of these.
            options: Keys of [decode] for this call, such as `beam=1`, as for `with_options`.
        """
        captioner = self.with_options(**options)
        remedy = "for the n best, call caption_files(files, n_best=...)"
        check_one_text(options, captioner.config, f"caption gives one text about a file; {remedy}")
        return self.reader.inputs.one_or_all(
            lambda decoded: (texts[0].text for texts in captioner.alternatives(decoded)), files
        )

    __call__ = predict = caption

    def caption_files(
        self, files: Iterable[Input], done: Done = lambda _: None, **options: Unpack[DecodeOptions]
    ) -> Iterator[list[Alternative]]:
        """Generate texts about any number of files, in order: for each file the `n_best` texts, best first."""
        return self.with_options(**options).alternatives(self.reader.inputs.each(files), done)

    def alternatives(self, decoded: Iterable[np.ndarray], done: Done = lambda _: None) -> Iterator[list[Alternative]]:
        """Generate the `n_best` texts about each decoded input; `done` is called with the number just finished."""
        check_beam(self.config.beam, len(self.tokenizers.target), self.device)

        def search_batch(inputs: Tensor, padding_mask: Tensor) -> list[list[Hypothesis]]:  # (B N F), (B N)
            limits = [self.longest_output] * len(inputs)
            return search(self.model.start(inputs, padding_mask), limits, self.config)

        # Each input becomes `beam` rows in the decoder, so fewer inputs fit into a batch.
        outputs = self.reader.run(decoded, search_batch, self.config.batch_tokens // self.config.beam, done)
        decode = self.tokenizers.target.decode
        return ([Alternative(decode(h.tokens), h) for h in hypotheses] for hypotheses in outputs)

    @property
    def longest_output(self) -> int:
        """Maximum number of tokens in an output, <eos> included."""
        return min(self.config.extra, self.model.max_target_positions() or self.config.extra)
