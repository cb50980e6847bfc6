"""Generation and scoring with language models for many rows of token ids, in batches of similar length."""

from collections.abc import Callable, Iterator, Sequence

import torch

from heedful.architectures.heads import CausalModel
from heedful.architectures.model import evaluating
from heedful.nn.masks import AttentionMask
from heedful.search.generation import GenerationRow
from heedful.search.sampling import sample
from heedful.search.source_to_target import log_probs_of, padded_rows
from heedful.text.sequences import batches


@torch.inference_mode()
def continue_rows(
    model: CausalModel,
    rows: list[GenerationRow],
    context: int | None,
    never: Sequence[int],
    spell: Callable[[list[int]], bytes],
) -> Iterator[None]:
    """Generate one token for each row at every step, and yield after each step.

    Generation stops when all rows have ended, or when the batch, padding included, fills the context.

    Args:
        model: The language model.
        rows: Rows whose windows fit into the context.
        context: The maximum number of tokens that the model reads, or None if there is no limit.
        never: Ids that are never generated.
        spell: Returns the bytes of a list of token ids.
    """
    device = next(model.parameters()).device
    # With padding on the left, all prompts end in the last column, after which each row gets its next token.
    prompts, padding_mask = padded_rows([row.window for row in rows], device, side="left")
    with evaluating(model):
        state = model.start(prompts, padding_mask)
    tokens = state.begin
    width = prompts.size(1)
    while rows and (context is None or width <= context):
        with evaluating(model):  # not around the yield, after which the caller may train the model
            logits = state.step(tokens)
        choices, scores = sample(logits, rows, never)
        for row, token, score in zip(rows, choices.tolist(), scores.tolist(), strict=True):
            row.scores.append(score)
            row.take(token, spell([token]))
        yield

        live = [i for i, row in enumerate(rows) if not row.done]
        if 0 < len(live) < len(rows):
            state.select(torch.tensor(live, device=tokens.device))
        rows = [rows[i] for i in live]
        tokens = choices[live].to(tokens.device)
        width += 1


@torch.inference_mode()
def score_windows(
    model: CausalModel, windows: Sequence[list[int]], firsts: Sequence[int], batch_tokens: int
) -> list[list[float]]:
    """Compute log P of the tokens after index `firsts[i]` in each window i, each token given all tokens before it."""
    device = next(model.parameters()).device
    scores: list[list[float]] = [[]] * len(windows)
    with evaluating(model):
        for batch in batches(windows, batch_tokens):
            tokens, padding_mask = padded_rows([windows[i] for i in batch], device)
            # The hidden state of token i predicts token i + 1, so the last token is not an input.
            mask = AttentionMask(padding_mask[:, :-1], tokens.size(1) - 1, causal=True)
            hidden = model.hidden(tokens[:, :-1], mask)
            for index, states, row in zip(batch, hidden, tokens, strict=True):
                first, stop = firsts[index], len(windows[index]) - 1
                scores[index] = log_probs_of(states[first:stop], row[first + 1 : stop + 1], model.output)
    return scores
