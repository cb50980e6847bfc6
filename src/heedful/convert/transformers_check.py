"""Comparison of a model's outputs with those of its export in Hugging Face `transformers`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checkpoint.load import LoadedModel
from heedful.convert.exporter import SINGLE_INPUTS, Agreement, compare_generator
from heedful.convert.weights import present_tokens
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.text.pipeline import BOS, EOS

TITLE = "transformers"


def compare_with_transformers(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare the outputs of a text model with those of its export, loaded with `transformers` in float32.

    GPTs and encoder-decoders generate by greedy search, and both libraries score the same tokens. For BERT models, the
    hidden states are compared. At most `SINGLE_INPUTS` texts are compared. Blank texts are left out, and so are texts
    with the name of a special token, which `transformers` reads as the token.
    """
    import transformers

    with without_reports():
        return _compare(transformers, loaded, folder, texts)


def _compare(transformers: ModuleType, loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    names = tokenizer.all_special_tokens
    # A name such as <eos> in a text is the token in `transformers`, but text in heedful.
    texts = [text for text in texts if text.strip() and not any(name in text for name in names)][:SINGLE_INPUTS]
    predictor = loaded.use()
    if isinstance(predictor, Generator):
        # In float32, whatever the stored type, so that only the rounding of the weights can cause differences.
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).float().eval()
        return compare_generator(loaded, GPT(model, tokenizer, present_tokens(loaded.model)), texts, TITLE)
    with torch.inference_mode():
        if isinstance(predictor, Translator):
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).float().eval()
            return _compare_translator(predictor, model, tokenizer, texts)
        model = transformers.AutoModel.from_pretrained(folder).float().eval()
        return _compare_encoder(predictor, model, tokenizer, texts, loaded.recipe.data.max_length)


@contextmanager
def without_reports() -> Iterator[None]:
    """Hide the progress bars and warnings of `transformers`.

    It warns of the weights of a head, for example, although only the hidden states are compared.
    """
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


class GPT:
    """Adapter for a GPT in `transformers`. It takes and returns heedful's token ids.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        present: heedful's id of each token of the model, (V,).
    """

    def __init__(self, model: Any, tokenizer: Callable[..., Any], present: Sequence[int]) -> None:
        self.present = np.array(present)
        self._model = model
        self._tokenizer = tokenizer

    @torch.inference_mode()
    def continue_greedily(self, prompt: str, count: int, suppressed: Sequence[int]) -> list[int]:
        """Continue a prompt with the most probable tokens except `suppressed`, up to <eos> or `count` tokens."""
        del suppressed  # the export suppresses these tokens in generation_config.json
        ids = self._tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        row = self._model.generate(**ids, do_sample=False, max_new_tokens=count)[0]
        output = self.present[row[ids["input_ids"].size(1) :].numpy()].tolist()
        return output[: output.index(EOS)] if EOS in output else output

    @torch.inference_mode()
    def log_probs(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Compute the log-probability of each id after the first one, given the ids before it."""
        # `present` is sorted, so the index of an id in it is the id in the export.
        tokens = torch.from_numpy(np.searchsorted(self.present, ids))
        scores = self._model(tokens[None, :-1]).logits[0].double().log_softmax(-1)
        return scores.gather(1, tokens[1:, None])[:, 0].numpy()


def _compare_translator(translator: Translator, model: Any, tokenizer: Any, texts: Sequence[str]) -> Agreement:
    limit = model.config.max_position_embeddings
    texts = [text for text in texts if len(translator.tokenizers.source.encode(text)) < limit]
    lines = list(translator.translate_lines(texts, beam=1))
    scores = translator.score([(text, line.text) for text, line in zip(texts, lines, strict=True)])
    equal, differences = 0, [0.0]
    for text, line, score in zip(texts, lines, scores, strict=True):
        source = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        tokens = list(line.alternatives[0].hypothesis.tokens)
        count = min(len(tokens) + 1, limit - 1)
        # The first token of the row is the decoder's start token, which heedful's tokens do not include.
        row = model.generate(**source, num_beams=1, do_sample=False, max_new_tokens=count)[0, 1:].tolist()
        # A translation that reached a length limit is compared up to this length.
        end = count if line.complete else min(count, len(tokens))
        equal += row[:end] == [*tokens, EOS][:end]
        targets = torch.tensor([[BOS, *score.tokens][: limit + 1]])
        logits = model(**source, decoder_input_ids=targets[:, :-1]).logits[0]
        theirs = logits.double().log_softmax(-1).gather(1, targets[0, 1:, None])[:, 0]
        ours = torch.tensor(score.log_probs[: len(theirs)], dtype=torch.double)
        differences.append(float((theirs - ours).abs().max()))
    return Agreement(inputs=len(texts), equal=equal, difference=max(differences), program=TITLE)


def _compare_encoder(predictor: Any, model: Any, tokenizer: Any, texts: Sequence[str], max_length: int) -> Agreement:
    equal, differences = 0, [0.0]
    for text in texts:
        # `max_length` counts <bos> and <eos>.
        ours = [BOS, *predictor.tokenizer.encode(text)[: max_length - 2], EOS]
        equal += tokenizer(text, truncation=True, max_length=max_length)["input_ids"] == ours
        ids = torch.tensor([ours])
        states = predictor.model.backbone(ids, torch.ones_like(ids, dtype=torch.bool))
        differences.append(float((states - model(ids).last_hidden_state).abs().max()))
    return Agreement(inputs=len(texts), equal=equal, difference=max(differences), program=TITLE)
