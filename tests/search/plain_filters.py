"""The distribution that a `GenerateConfig` asks for, worked out token by token with numpy, one row at a time."""

import numpy as np

from heedful.config.schema import GenerateConfig


def probabilities(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def fewest(ranked: list[int], probs: np.ndarray, mass: float) -> list[int]:
    """The first tokens of a ranking until they have the mass."""
    kept, total = [], 0.0
    for token in ranked:
        if total >= mass:
            break
        kept.append(token)
        total += probs[token]
    return kept


def likeliest(probs: np.ndarray) -> list[int]:
    return sorted((t for t in range(len(probs)) if probs[t] > 0), key=lambda t: (-probs[t], t))


def restricted(logits: np.ndarray, kept: list[int]) -> np.ndarray:
    return np.array([x if token in kept else -np.inf for token, x in enumerate(logits)])


def penalised(logits: np.ndarray, config: GenerateConfig, prompt: list[int], output: list[int]) -> np.ndarray:
    logits = logits.copy()
    for token in {*prompt, *output}:
        strength = config.repetition_penalty
        logits[token] = logits[token] / strength if logits[token] > 0 else logits[token] * strength
    for token in output:
        logits[token] -= config.frequency_penalty
    for token in set(output):
        logits[token] -= config.presence_penalty
    return logits


def without_repeats(logits: np.ndarray, size: int | None, seen: list[int]) -> np.ndarray:
    if size is None:
        return logits
    said = {tuple(seen[i : i + size]) for i in range(len(seen) - size + 1)}
    before = tuple(seen[len(seen) - size + 1 :]) if len(seen) >= size - 1 else None
    allowed = [t for t in range(len(logits)) if before is None or (*before, t) not in said]
    return restricted(logits, allowed)


def distribution(
    logits: np.ndarray, config: GenerateConfig, prompt: list[int], output: list[int], never: list[int]
) -> np.ndarray:
    logits = penalised(logits.astype(np.float64), config, prompt, output)
    logits[never] = -np.inf
    logits = without_repeats(logits, config.no_repeat_ngram, prompt + output)
    greedy = config.temperature == 0
    logits = restricted(logits, [int(np.argmax(logits))]) if greedy else logits / config.temperature
    if config.top_k is not None:
        logits = restricted(logits, likeliest(probabilities(logits))[: config.top_k])
    if config.top_p is not None:
        probs = probabilities(logits)
        logits = restricted(logits, fewest(likeliest(probs), probs, config.top_p))
    if config.min_p is not None:
        probs = probabilities(logits)
        logits = restricted(logits, [t for t in range(len(probs)) if probs[t] >= config.min_p * probs.max()])
    if config.typical is not None:
        probs = probabilities(logits)
        surprise = {t: -np.log(probs[t]) for t in likeliest(probs)}
        entropy = sum(probs[t] * surprise[t] for t in surprise)
        ranked = sorted(surprise, key=lambda t: (abs(surprise[t] - entropy), t))
        logits = restricted(logits, fewest(ranked, probs, config.typical))
    return probabilities(logits)
