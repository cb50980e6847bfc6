"""How good a model is on sentences that it is not trained on."""

from dataclasses import dataclass, replace

import torch

from heedful.config.schema import DecodeConfig, Recipe
from heedful.data.batches import BatchPlan, assemble
from heedful.data.prepare import Prepared
from heedful.data.store import PairStore
from heedful.decode.translator import Translator
from heedful.evaluate import Scoring, score
from heedful.losses import perplexity
from heedful.models import EncoderDecoder
from heedful.tasks import translation

GREEDY = DecodeConfig(beam=1)


@dataclass(frozen=True)
class Validation:
    """Scores of the whole validation set, from the float32 weights."""

    loss: float  # nats a target token, label smoothing included
    perplexity: float  # e^(mean negative log-likelihood of a target token)
    bleu: float | None  # of greedy translations, by sacrebleu; None if it was not asked for

    def merit(self, metric: str) -> float:
        """What the best checkpoint has most of: BLEU, or the negated loss."""
        return -self.loss if metric == "loss" or self.bleu is None else self.bleu


@torch.no_grad()
def validate(model: EncoderDecoder, recipe: Recipe, prepared: Prepared) -> Validation | None:
    """Score a model; None where there is no validation set."""
    if prepared.valid is None:
        return None
    model.eval()
    loss, nll = mean_losses(model, recipe, prepared.valid)
    bleu = translate_and_score(model, recipe, prepared) if recipe.train.validate_bleu else None
    return Validation(loss, perplexity(nll), bleu)


def mean_losses(model: EncoderDecoder, recipe: Recipe, store: PairStore) -> tuple[float, float]:
    """The smoothed loss and the negative log-likelihood of a target token, in nats."""
    device = next(model.parameters()).device
    plan = BatchPlan([store.lengths], [1.0], recipe.train.batch_tokens, seed=0)
    sums = torch.zeros(2, dtype=torch.float64)
    count = 0
    for ids in plan.epoch(0):
        batch = translation.collate(*assemble([store], ids), device)
        result = translation.loss(model, batch, recipe.train.label_smoothing)
        sums += torch.stack([result.sum, result.nll]).double().cpu()
        count += result.count
    loss, nll = (sums / count).tolist()
    return loss, nll


def translate_and_score(model: EncoderDecoder, recipe: Recipe, prepared: Prepared) -> float:
    """SacreBLEU of greedy translations of the raw validation text."""
    config = replace(GREEDY, max_extra=recipe.decode.max_extra)
    sources, references = zip(*prepared.valid_text, strict=True)
    translations = Translator(model, prepared.tokenizers, config).translate(sources)
    scoring = Scoring(metrics=("bleu",), language=recipe.data.target_language)
    return score(translations, [references], scoring)[0].value
