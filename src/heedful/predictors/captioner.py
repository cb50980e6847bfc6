"""Writes text about pictures or sounds with a trained encoder-decoder, by every search that translation has."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Unpack, overload

import numpy as np
from torch import Tensor

from heedful.architectures.model import SourceToTarget
from heedful.config.options import DecodeOptions, with_options
from heedful.config.schema import Recipe
from heedful.predictors.media_reader import Input, MediaReader
from heedful.predictors.predictor import Done, Predictor, check_one_text
from heedful.predictors.translator import Alternative
from heedful.search.beam import check_beam, search
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer_pair import TokenizerPair


class Captioner(Predictor[SourceToTarget, str]):
    """Captioner: an encoder-decoder that reads pictures or sounds and writes a text about each.

    The text about one file never depends on other files.
    """

    def __init__(self, model: SourceToTarget, tokenizers: TokenizerPair, recipe: Recipe) -> None:
        super().__init__(model)
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.target
        self.config = recipe.decode
        self.reader = MediaReader(model, recipe)

    def with_options(self, **options: Unpack[DecodeOptions]) -> "Captioner":
        """Create a captioner that shares this model, with other settings for decoding.

        Raises:
            InputError: an option does not exist, or has a value that [decode] cannot have.
        """
        changed = copy(self)
        changed.config = with_options(self.config, options)
        changed.recipe = self.recipe and replace(self.recipe, decode=changed.config)
        return changed

    @overload
    def caption(self, files: Input, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def caption(self, files: Iterable[Input], **options: Unpack[DecodeOptions]) -> list[str]: ...
    def caption(self, files: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Write the text about a file, or the texts about several files in their order.

        Args:
            files: the name of a file, its bytes, or an array of pixels (H W C, 8 bits) or of samples (N) at the rate of
                the recipe; or an iterable of these.
            options: keys of [decode] for this call, such as `beam=1`.

        Raises:
            InputError: an input is none of these, or cannot be read; an option cannot be used; or `n_best` is above 1.
        """
        chosen = self.with_options(**options)
        remedy = "for the n best take what caption_files(files, n_best=...) gives"
        check_one_text(options, chosen.config, f"caption gives one text about a file; {remedy}")
        return self.reader.inputs.one_or_all(chosen.texts, files)

    __call__ = predict = caption

    def caption_files(
        self, files: Iterable[Input], done: Done = lambda _: None, **options: Unpack[DecodeOptions]
    ) -> Iterator[list[Alternative]]:
        """Write texts about any number of files, in their order: for each file the `n_best` texts, best first.

        Raises:
            InputError: under the same conditions as `caption`.
        """
        return self.with_options(**options).alternatives(self.reader.inputs.each(files), done)

    def texts(self, decoded: Iterable[np.ndarray], done: Done = lambda _: None) -> Iterator[str]:
        """Write the best text about each decoded input."""
        return (found[0].text for found in self.alternatives(decoded, done))

    def alternatives(self, decoded: Iterable[np.ndarray], done: Done = lambda _: None) -> Iterator[list[Alternative]]:
        """Write the `n_best` texts about each decoded input; `done` is called with the number just finished."""
        check_beam(self.config.beam, len(self.tokenizers.target), self.device)
        found = self.reader.run(decoded, self.search, self.config.batch_tokens // self.config.beam, done)
        return ([Alternative(self.text(h), h) for h in hypotheses] for hypotheses in found)

    def search(self, inputs: Tensor, padding_mask: Tensor) -> list[list[Hypothesis]]:
        """Search for the texts about a batch of inputs (B N F), within `max_extra` and the model's positions."""
        return search(self.model.start(inputs, padding_mask), [self.longest_output] * len(inputs), self.config)

    @property
    def longest_output(self) -> int:
        """The most tokens of a text, <eos> counted."""
        return min(self.config.extra, self.model.max_target_positions() or self.config.extra)

    def text(self, hypothesis: Hypothesis) -> str:
        """The text of a hypothesis."""
        return self.tokenizers.target.decode(hypothesis.tokens)
