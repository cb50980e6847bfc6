"""Loss functions, which return a sum and a count; cross-entropy has label smoothing and a fused output projection.

The losses of word2vec are in `tasks.word_vectors`.

N tokens, D model, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.nn.attention import computes_in_half

LARGEST_EXPONENT = 709.0  # the largest integer n for which e^n is finite in float64
LOGITS_AT_ONCE = {"cpu": 2**22, "cuda": 2**28, "meta": 2**28}  # few enough for a CPU's cache, enough to keep a GPU busy
HALF_ROWS = 1024  # rows at once in float16, where a sum over more hidden states could overflow
ROWS = 64  # tokens are padded with zeros to a multiple of this, because CPU kernels are compiled for each matrix size


@dataclass(frozen=True)
class Loss:
    """Loss of a batch as sums over tokens or examples, and their count, so that losses of different batches add up."""

    sum: Float[Tensor, ""]  # the loss to minimise, such as smoothed cross-entropy in nats; differentiable
    nll: Float[Tensor, ""]  # loss without smoothing, such as the negative log-likelihood in nats, for the perplexity
    count: int


def perplexity(nll: float) -> float:
    """Return the perplexity e^nll of a mean negative log-likelihood in nats, at most e^709, which is finite."""
    # The perplexity of a diverged run is infinite, which JSON cannot represent.
    return math.exp(min(nll, LARGEST_EXPONENT))


def cross_entropy(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    target: Int[Tensor, " N"],
    smoothing: float,
    bias: Float[Tensor, " V"] | None = None,
) -> Loss:
    """Compute the cross-entropy of the logits `hidden @ weight.T + bias` with label smoothing.

    The logits of only a few rows are in memory at a time. The forward pass also computes the gradient, unless gradients
    are turned off, as in validation. The smoothed target gives probability 1 - smoothing to the correct token, and
    spreads the rest evenly over all V tokens (Szegedy et al. 2016, as in Vaswani et al. 2017, section 5.4). The
    negative log-likelihood of a token is clipped to 87 nats, where the probability is the smallest normal float32
    number; its gradient is not clipped.
    """
    # Logits of a batch of 25,000 tokens over 37,000 words would be 3.7 GB, and their gradient as much again.
    compute = FusedCrossEntropy.apply if torch.is_grad_enabled() else cross_entropy_sums
    total, nll = compute(hidden, weight, bias, target, smoothing)
    return Loss(total, nll, target.numel())


def output_cross_entropy(
    hidden: Float[Tensor, "N D"], output: nn.Module, target: Int[Tensor, " N"], smoothing: float
) -> Loss:
    """Compute the cross-entropy of the logits `output(hidden)`, fused with the projection if the layer is linear."""
    if isinstance(output, nn.Linear):
        return cross_entropy(hidden, output.weight, target, smoothing, output.bias)
    # The output layer of an ensemble, whose loss is evaluated, but not minimised: a few rows of logits at a time.
    blocks = zip(hidden.split(HALF_ROWS), target.split(HALF_ROWS), strict=True)
    parts = [label_cross_entropy(output(rows), targets, smoothing) for rows, targets in blocks]
    return Loss(
        torch.stack([part.sum for part in parts]).sum(), torch.stack([part.nll for part in parts]).sum(), len(hidden)
    )


def label_cross_entropy(
    logits: Float[Tensor, "N V"],
    target: Int[Tensor, " N"],
    smoothing: float = 0.0,
    weights: Float[Tensor, " V"] | None = None,
) -> Loss:
    """Compute the cross-entropy over a few classes from their logits, in float32.

    With `weights`, the loss of an example, smoothing included, is multiplied by the weight of its class. The count is
    still the number of examples, so that the loss does not depend on how examples are split into batches.
    """
    # bfloat16 has 8 significant bits, too few for sums of exponentials.
    logits = logits.float()
    if weights is None:
        total = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
    else:
        # Not torch's argument `weight`, which weights each class of the smoothed target by its own weight.
        each = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="none")
        total = (weights[target] * each).sum()
    return Loss(total, F.cross_entropy(logits, target, reduction="sum").detach(), target.numel())


def soft_label_cross_entropy(
    logits: Float[Tensor, "N V"],
    shares: Float[Tensor, "N V"],
    smoothing: float = 0.0,
    weights: Float[Tensor, " V"] | None = None,
) -> Loss:
    """Compute the cross-entropy over a few classes in float32 for soft labels, which give each class a share.

    With `weights`, the loss of an example is the sum of its class losses, each times the share and weight of the class.
    """
    logits = logits.float()
    if weights is None:
        total = F.cross_entropy(logits, shares, label_smoothing=smoothing, reduction="sum")
    else:
        # Log p is smoothed, not the shares: the true classes determine the weights, as in `label_cross_entropy`.
        log_p, weighted = logits.log_softmax(-1), shares * weights
        smoothed = (1 - smoothing) * log_p + smoothing * log_p.mean(-1, keepdim=True)
        total = -(weighted * smoothed).sum()
    return Loss(total, F.cross_entropy(logits, shares, reduction="sum").detach(), len(logits))


def squared_error(predicted: Float[Tensor, "N F"], target: Float[Tensor, "N F"]) -> Loss:
    """Compute the squared error in float32: for each vector, the mean over its F values."""
    # With the mean over F, losses of patches of different sizes are comparable.
    total = (predicted.float() - target).square().mean(-1).sum()
    return Loss(total, total.detach(), len(target))


def contrastive_loss(scores: Float[Tensor, "N N"], positives: Bool[Tensor, "N N"], smoothing: float) -> Loss:
    """Compute the cross-entropy of each query's candidate, with in-batch negatives (Henderson et al. 2017, 4.4).

    Each query is a row of `scores`; its own candidate is on the diagonal. `positives` is True wherever a candidate
    belongs to a query. CLIP uses the mean of the losses over rows and over columns of `scores` (Radford et al. 2021,
    figure 3).
    """
    # Another candidate that also belongs to the query is not a negative: it is left out of the softmax.
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    candidates = own | ~positives
    log_p = scores.masked_fill(~candidates, -torch.inf).log_softmax(-1)
    nll = -log_p.diagonal()
    # Smoothing spreads probability only over candidates that are not excluded, whose log p is finite.
    mean = -log_p.masked_fill(~candidates, 0.0).sum(-1) / candidates.sum(-1)
    total = ((1 - smoothing) * nll + smoothing * mean).sum()
    return Loss(total, nll.sum().detach(), len(scores))


def reference_cross_entropy(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    target: Int[Tensor, " N"],
    smoothing: float,
    bias: Float[Tensor, " V"] | None = None,
) -> Loss:
    """Compute the same as `cross_entropy` with torch's functions and all logits in memory, as a reference."""
    return label_cross_entropy(F.linear(hidden, weight, bias), target, smoothing)


def cross_entropy_sums(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Compute the sums of smoothed loss and negative log-likelihood of `FusedCrossEntropy`, without its gradients."""
    tokens = hidden.size(0)
    rows, targets = padded(hidden, target)
    normalizer, target_logits = hidden.new_empty(2, rows.size(0), dtype=torch.float32)
    for part in row_blocks(rows, weight):
        _, target_logits[part], normalizer[part] = softmax_of(rows[part], weight, bias, targets[part])
    # The mean of all V logits of a token is a single product with the mean row of the weights.
    mean = hidden.float() @ weight.mean(0, dtype=torch.float32)
    if bias is not None:
        mean += bias.mean(dtype=torch.float32)
    normalizer, target_logits = normalizer[:tokens], target_logits[:tokens]
    smoothed = (normalizer - (1 - smoothing) * target_logits - smoothing * mean).sum()
    return smoothed, (normalizer - target_logits).sum()


def padded(hidden: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Pad hidden states and targets with zeros to a multiple of `ROWS`."""
    rows = -hidden.size(0) % ROWS
    return F.pad(hidden, (0, 0, 0, rows)), F.pad(target, (0, rows))


def row_blocks(hidden: Tensor, weight: Tensor) -> list[slice]:
    """Divide rows of hidden states into blocks of at most `LOGITS_AT_ONCE` logits, but at least `ROWS` rows."""
    rows = max(1, LOGITS_AT_ONCE.get(hidden.device.type, 2**22) // len(weight) // ROWS) * ROWS
    rows = min(rows, HALF_ROWS) if computes_in_half(hidden) else rows
    return [slice(start, start + rows) for start in range(0, hidden.size(0), rows)]


def softmax_of(
    hidden: Float[Tensor, "N D"], weight: Float[Tensor, "V D"], bias: Tensor | None, target: Int[Tensor, " N"]
) -> tuple[Float[Tensor, "N V"], Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Compute the softmax of a block of rows, the logit of each target, and the log of the sum of all e^logit."""
    logits = F.linear(hidden, weight, bias)
    p = torch.softmax(logits, dim=-1)
    target_logits = logits.gather(1, target[:, None])[:, 0].float()
    likelihood = p.gather(1, target[:, None])[:, 0].float()
    # log p = logit - log sum: the log of the sum comes from the softmax, without a second pass over the logits.
    # The clamp keeps the loss finite where p underflows to 0.
    return p, target_logits, target_logits - likelihood.clamp(min=torch.finfo(torch.float32).tiny).log()


class FusedCrossEntropy(torch.autograd.Function):
    """Autograd function of the fused cross-entropy: sums of smoothed loss and negative log-likelihood, both float32.

    With p the softmax of the logits, the gradient of each logit is p - smoothing / V, minus 1 - smoothing for the
    target. Only p needs a matrix (N V), which is computed in blocks. The contributions of the two other terms to the
    gradients of hidden states and weights are added once, without the logits.
    """

    @staticmethod
    def forward(
        ctx, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Compute smoothed loss and negative log-likelihood in blocks of rows, and store the gradients for backward."""
        tokens = hidden.size(0)
        hidden, target = padded(hidden, target)
        normalizer, target_logits = hidden.new_empty(2, hidden.size(0), dtype=torch.float32)
        # Gradients of weights and bias are sums over all blocks, in float32: bfloat16 would lose small terms.
        hidden_grad, weight_grad = torch.empty_like(hidden), torch.zeros_like(weight, dtype=torch.float32)
        bias_grad = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        # The first term of the gradient, p. Padding adds nothing to `weight_grad`: its hidden states are zero.
        for part in row_blocks(hidden, weight):
            p, target_logits[part], normalizer[part] = softmax_of(hidden[part], weight, bias, target[part])
            hidden_grad[part] = p @ weight
            weight_grad += p.T @ hidden[part]
            # Padding rows have a softmax too, and must not add to `bias_grad`.
            if bias_grad is not None:
                bias_grad += p[: tokens - part.start].sum(0, dtype=torch.float32)
        hidden, target, hidden_grad, normalizer, target_logits = (
            x[:tokens] for x in (hidden, target, hidden_grad, normalizer, target_logits)
        )
        # The two other terms: 1 - smoothing for the target, and smoothing / V for every token of the vocabulary.
        right, even = 1 - smoothing, weight.mean(0, dtype=torch.float32)
        mean = hidden.float() @ even
        hidden_grad -= right * weight[target] + (smoothing * even).to(hidden.dtype)
        # Not index_add_: embedding_dense_backward adds the states of each target in the same order on every device.
        weight_grad -= right * torch.ops.aten.embedding_dense_backward(hidden.float(), target, len(weight), -1, False)
        weight_grad -= smoothing / len(weight) * hidden.sum(0, dtype=torch.float32)
        if bias is not None and bias_grad is not None:
            mean += bias.mean(dtype=torch.float32)
            bias_grad -= right * target.bincount(minlength=len(bias)) + smoothing * len(target) / len(bias)
        ctx.save_for_backward(hidden_grad, weight_grad.to(weight.dtype), bias_grad)
        nll = (normalizer - target_logits).sum()
        # The log-likelihood is only reported; training minimises the smoothed loss.
        ctx.mark_non_differentiable(nll)
        return (normalizer - right * target_logits - smoothing * mean).sum(), nll

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        """Multiply the stored gradients by the gradient of the smoothed loss; the log-likelihood has none."""
        hidden_grad, weight_grad, bias_grad = ctx.saved_tensors
        scale = grad_outputs[0].to(hidden_grad.dtype)
        return hidden_grad * scale, weight_grad * scale, None if bias_grad is None else bias_grad * scale, None, None
