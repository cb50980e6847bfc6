"""A translator whose search runs on CTranslate2: it starts without torch, and single sentences take less time.

The results are those of `heedful.search.beam`: CTranslate2 finishes the same hypotheses, and heedful's length penalty
ranks them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heedful.config.options import with_options
from heedful.config.schema import DecodeConfig, Recipe
from heedful.predictors.ctranslate2_model import (
    POSITIONS,
    CTranslate2Model,
    CTranslate2Predictor,
    Rows,
    ScoredOutputs,
    as_tokens,
    refuse,
)
from heedful.predictors.predictor import Done
from heedful.predictors.translator import MAX_SOURCE_TOKENS, Translator
from heedful.search.constraints import Guide
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.predictors.word_alignment import Alignment
    from heedful.text.shortlist import Shortlist

# Maximum number of source tokens in a batch with shortlists: each row may use the tokens in the shortlists of all rows.
SHORTLIST_TOKENS = 512
EXCLUDED = {str(PAD), str(BOS)}  # tokens that no output contains


def search_misfits(config: DecodeConfig, tokenizers: TokenizerPair) -> list[str]:
    """List the search settings that CTranslate2 does not support, each with the supported values."""
    shortlist = tokenizers.shortlist if config.shortlist else None
    vocabulary = len(shortlist.always) if shortlist else len(tokenizers.target)
    misfits = []
    if config.beam > 1 and not (0 < config.patience <= 1 and (config.patience * config.beam).is_integer()):
        misfits.append(
            f"decode.patience = {config.patience:g}: must be at most 1, and a whole number times the beam size"
        )
    elif config.n_best > max(1, config.patience * config.beam):
        misfits.append(f"decode.n_best = {config.n_best}: must be at most patience x beam size")
    # CTranslate2 excludes tokens before it computes probabilities, which changes all others, and thus a beam.
    if config.beam > 1 and config.min_tokens:
        misfits.append(f"decode.min_tokens = {config.min_tokens}: must be 0, or decode.beam = 1")
    if config.beam > 1 and config.no_repeat_ngram:
        misfits.append(f"decode.no_repeat_ngram = {config.no_repeat_ngram}: must not be set, or decode.beam = 1")
    if 2 * config.beam > vocabulary:
        misfits.append(f"decode.beam = {config.beam}: must be at most half of the vocabulary of {vocabulary:,} tokens")
    if config.extra > POSITIONS - MAX_SOURCE_TOKENS:
        misfits.append(f"decode.max_extra = {config.extra}: must be at most {POSITIONS - MAX_SOURCE_TOKENS:,}")
    return misfits


class EncoderDecoder(CTranslate2Model):
    """Encoder-decoder with its search."""

    engine = "Translator"

    def max_positions(self) -> int | None:
        """Return the number of source positions that the model has learned; None if it is unlimited."""
        return self.recipe.model.learned_positions

    def max_target_positions(self) -> int | None:
        """Return the number of target positions that the model has learned; None if it is unlimited."""
        return self.recipe.model.learned_target_positions

    def search(
        self,
        rows: Rows,
        limits: Sequence[int],
        config: DecodeConfig,
        done: Done = lambda _: None,
        shortlist: "Shortlist | None" = None,
    ) -> list[list[Hypothesis]]:
        """Find the outputs for rows of token ids as `heedful.search.source_to_target.search_rows` does.

        A row has no outputs if it is empty, or if one of CTranslate2's outputs contains <pad> or <bos>, which only
        torch can exclude.
        """
        outputs: list[list[Hypothesis]] = [[] for _ in rows]
        batch = ScoredOutputs[tuple[int, list[int]]](  # the row of each hypothesis, and its tokens with <eos>
            lambda pairs: self.score([rows[index] for index, _ in pairs], [tokens for _, tokens in pairs])
        )
        # CTranslate2 has one limit for all rows of a call. First, all rows are searched up to the largest limit. A row
        # whose search ended before its own limit is final; the others are searched again.
        # The longest rows come first, as in CTranslate2's batches, so that results arrive in this order.
        indices = sorted((index for index, row in enumerate(rows) if row), key=lambda index: -len(rows[index]))
        # CTranslate2 has one shortlist for all rows of a batch. If its most probable token is in a row's own shortlist,
        # it is also the most probable one there. Greedy outputs with only such tokens are kept; the other rows are
        # searched again, each as a batch. In a beam search, tokens of other rows could displace better ones, so each
        # row is a batch from the start.
        remaining = {(max(limits, default=0), shortlist is not None and config.beam > 1): indices}
        engine = self.engine_for(rows)
        while remaining:
            searches = [
                (key, indices, self._start(engine, [rows[index] for index in indices], config, *key, shortlist))
                for key, indices in remaining.items()
            ]
            remaining = {}
            for (limit, alone), indices, results in searches:
                for index, result in zip(indices, self.each(results), strict=True):
                    lengths = [len(tokens) + (len(tokens) < limit) for tokens in result.hypotheses]  # with <eos>
                    if limit > limits[index] <= max(lengths):
                        remaining.setdefault((limits[index], alone), []).append(index)
                    elif shortlist and not alone and not shortlist.allows(rows[index], result.hypotheses[0]):
                        remaining.setdefault((limit, True), []).append(index)
                    elif all(map(EXCLUDED.isdisjoint, result.hypotheses)):
                        outputs[index] = hypotheses_of(index, result, lengths, config, batch, shortlist)
                        done(1)
        return outputs

    def _start(
        self, engine: Any, rows: Rows, config: DecodeConfig, limit: int, alone: bool, shortlist: "Shortlist | None"
    ) -> Any:
        """Start to search rows that share a limit, each in its own batch if `alone`; return a promise for each row."""
        patience = config.patience if config.beam > 1 else 1
        tokens = max(1, config.batch_tokens // config.beam)
        return engine.translate_batch(
            as_tokens(rows),
            beam_size=config.beam,
            patience=patience,
            num_hypotheses=round(config.beam * patience),
            length_penalty=engine_penalty(config),
            min_decoding_length=config.min_tokens,
            no_repeat_ngram_size=config.no_repeat_ngram or 0,
            max_decoding_length=limit,
            max_input_length=0,
            max_batch_size=1 if alone else min(tokens, SHORTLIST_TOKENS) if shortlist else tokens,
            batch_type="examples" if alone else "tokens",
            use_vmap=shortlist is not None,
            return_scores=True,
            asynchronous=True,
        )

    def score(self, sources: Rows, targets: Rows) -> list[list[float]]:
        """Compute log P of each token of each target given its source: rows of ids, only the targets with <eos>.

        CTranslate2 scores <eos> as well, but an output that was cut at the last learned position leaves no room for it.
        Such an output is scored by torch.
        """
        limit = self.max_target_positions() or math.inf
        long = {index for index, target in enumerate(targets) if len(target) > limit}
        results = self.engine_for(sources).score_batch(
            as_tokens(sources),
            as_tokens([] if index in long else row[:-1] for index, row in enumerate(targets)),
            max_input_length=0,
            max_batch_size=DecodeConfig.batch_tokens,
            batch_type="tokens",
        )
        scores = [result.log_probs for result in results]
        for index in long:
            [scores[index]] = self.reference()._score_rows([[*sources[index], EOS]], [targets[index][:-1]])
        return scores


def engine_penalty(config: DecodeConfig) -> float:
    """Return the exponent of CTranslate2's length penalty |y|^exponent, chosen to approximate heedful's penalty.

    It is never 0 in a beam search, because the search would otherwise end earlier than heedful's.
    """
    if config.beam == 1:
        return 0.0
    # For sentences of about 15 tokens, (5 + |y|) / 6 grows like |y|^0.75.
    return max(config.alpha * (0.75 if config.penalty == "gnmt" else 1.0), 1e-6)


def hypotheses_of(
    index: int,
    result: Any,
    lengths: Sequence[int],
    config: DecodeConfig,
    batch: ScoredOutputs[tuple[int, list[int]]],
    shortlist: "Shortlist | None",
) -> list[Hypothesis]:
    """Convert a CTranslate2 result to heedful's `n_best` hypotheses, best first."""
    hypotheses = []
    for tokens, length, score in zip(result.hypotheses, lengths, result.scores, strict=True):
        # CTranslate2's score is log P / |y|^exponent; heedful's penalty replaces the divisor.
        log_prob, penalty = score * length ** engine_penalty(config), length_penalty(length, config)
        ids = list(map(int, tokens))
        scores = batch.add((index, [*ids, EOS]), length)
        # An output is more probable among the tokens of a shortlist, or among those that the settings do not exclude,
        # than among all, so this is not its log P.
        known = None if shortlist or config.min_tokens or config.no_repeat_ngram else log_prob
        hypotheses.append((log_prob / penalty, Hypothesis(ids, scores, penalty, known)))
    return [hypothesis for _, hypothesis in sorted(hypotheses, key=lambda pair: -pair[0])[: config.n_best]]


class CTranslate2Translator(CTranslate2Predictor, Translator):
    """Translator whose model runs on CTranslate2; `heedful.load(..., engine="ctranslate2")` returns one."""

    model_class = EncoderDecoder
    reference_class = Translator

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> None:
        self.model: Any = model  # instead of a torch module
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.source
        self.config = with_options(model.recipe.decode, options or {})
        self.recipe = model.recipe
        refuse(search_misfits(self.config, self.tokenizers))

    @staticmethod
    def misfits(recipe: Recipe, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> list[str]:
        tokenizers.check_shortlist((options or {}).get("shortlist", 0))
        return search_misfits(with_options(recipe.decode, options or {}), tokenizers)

    def _configured(self, options: Mapping[str, Any]) -> "CTranslate2Translator":
        changed = super()._configured(options)
        refuse(search_misfits(changed.config, changed.tokenizers))
        return changed

    def search_rows(self, rows: list[list[int]], done: Done = lambda _: None) -> list[list[Hypothesis]]:
        limits = [self.longest_output(len(row)) for row in rows]
        shortlist = self.tokenizers.shortlist if self.config.shortlist else None
        outputs = self.model.search(rows, limits, self.config, done, shortlist)
        remaining = [index for index, row in enumerate(rows) if row and not outputs[index]]
        # These rows have outputs with tokens that only torch can exclude; see `EncoderDecoder.search`.
        if remaining:
            reference = self.model.reference().with_options(**asdict(self.config))
            searches = reference.search_rows([rows[index] for index in remaining])
            for index, hypotheses in zip(remaining, searches, strict=True):
                outputs[index] = hypotheses
        done(len(remaining) + sum(not row for row in rows))
        return outputs

    def _constrained_search(
        self, rows: list[list[int]], limits: list[int], guides: list[Guide]
    ) -> list[list[Hypothesis]]:
        # CTranslate2 can force tokens, but not text, and has no required terms.
        reference = self.model.reference().with_options(**asdict(self.config))
        return reference._constrained_search(rows, limits, guides)

    def _score_rows(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        # CTranslate2 itself adds <eos> to the source.
        return self.model.score([row[:-1] for row in sources], targets)

    def _aligned(self, pairs: Iterator[tuple[str, str]]) -> "Iterator[Alignment]":
        # CTranslate2 returns the attention of some heads of one layer; torch's links are the same for both engines.
        return self.model.reference()._aligned(pairs)
