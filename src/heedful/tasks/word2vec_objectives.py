"""Objectives of word2vec: negative sampling, hierarchical softmax and full softmax, for hidden vectors of any origin.

B blocks of L words, C words that may be predicted in a block, T = C + negative samples, M predictions, P longest
path, V vocabulary, D model.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.losses import Loss, cross_entropy

if not torch.sparse.check_sparse_tensor_invariants.is_enabled():
    torch.sparse.check_sparse_tensor_invariants.disable()  # torch 2.11 warns where nobody has chosen


def negative_sampling(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "B T"],
    predicted: Bool[Tensor, "B C L"],
    noise: Float[Tensor, "B L"],
    count: int,
) -> Loss:
    """Negative sampling with samples that the words of a block share (Mikolov et al. 2013b, formula 4; Ji et al. 2016).

    Shared samples turn the scores of a block into one matrix product. In the mean the loss is that of independent
    samples. A sample that happens to be a context word counts as a sample nevertheless, as in the formula.

    Args:
        hidden: the vectors that predict.
        weight: the vectors of the predicted words.
        targets: the C words that may be predicted, and behind them the negative samples.
        predicted: True where one of the C words is predicted by a hidden vector.
        noise: the weight of each negative sample in the loss of a hidden vector.
        count: the number of predictions.
    """
    total, nll = NegativeSampling.apply(hidden, weight, targets, predicted, noise)
    return Loss(total, nll, count)


def reference_negative_sampling(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "B T"],
    predicted: Bool[Tensor, "B C L"],
    noise: Float[Tensor, "B L"],
) -> Float[Tensor, ""]:
    """Negative sampling as `negative_sampling`, by torch's own functions, as a reference."""
    scores = F.embedding(targets, weight) @ hidden.mT
    positive, negative = scores.split([predicted.size(1), scores.size(1) - predicted.size(1)], dim=1)
    return (F.softplus(-positive) * predicted).sum() + (F.softplus(negative).sum(1) * noise).sum()


class NegativeSampling(torch.autograd.Function):
    """Autograd function of negative sampling: the gradient of a score is its probability less 1 where it is right.

    The gradient of `weight` is sparse: it has a row for each target, and several rows for one that comes several times.
    The loss of a prediction is at most 87 nats, that of the smallest number in float32; its gradient is not bounded.
    """

    @staticmethod
    def forward(
        ctx, hidden: Tensor, weight: Tensor, targets: Tensor, predicted: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss, and keep what its gradient is made of."""
        rows = F.embedding(targets, weight)
        probability = torch.bmm(rows, hidden.mT).sigmoid_()  # (B, T, L), so that either part is one piece of memory
        least = torch.finfo(probability.dtype).tiny
        positive, negative = probability[:, : predicted.size(1)], probability[:, predicted.size(1) :]
        right = torch.where(predicted, positive, 1.0).clamp_(min=least).log_().sum()
        wrong = ((1 - negative).clamp_(min=least).log_().sum(1) * noise).sum()
        positive.sub_(1).mul_(predicted)
        negative.mul_(noise[:, None])
        ctx.save_for_backward(hidden, rows, probability, targets)
        ctx.vocabulary = len(weight)
        loss = -(right + wrong)
        nll = loss.clone()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """Multiply the errors of the scores with the vectors of the other side."""
        hidden, rows, errors, targets = ctx.saved_tensors
        errors = errors * grad_outputs[0]
        values = torch.bmm(errors, hidden).flatten(0, 1)
        size = (ctx.vocabulary, values.size(1))
        sparse = torch.sparse_coo_tensor(targets.flatten()[None], values, size, check_invariants=False)
        return torch.bmm(errors.mT, rows), sparse, None, None, None


def softmax(hidden: Float[Tensor, "M D"], weight: Float[Tensor, "V D"], targets: Int[Tensor, " M"]) -> Loss:
    """Full softmax over the vocabulary (Mikolov et al. 2013a, formula 2), whose cost grows with the vocabulary."""
    return cross_entropy(hidden, weight, targets, 0.0)


def hierarchical_softmax(
    hidden: Float[Tensor, "M D"],
    weight: Float[Tensor, "V D"],
    nodes: Int[Tensor, "M P"],
    branches: Bool[Tensor, "M P"],
    lengths: Int[Tensor, " M"],
) -> Loss:
    """Hierarchical softmax: a binary decision at each inner node above the predicted word (Mikolov et al. 2013b, 2.1).

    Args:
        hidden: the vectors that predict.
        weight: the vectors of the inner nodes.
        nodes: the inner nodes above each predicted word.
        branches: the branch to take at each of them.
        lengths: how many of the P nodes are above the word.
    """
    scores = (F.embedding(nodes, weight, sparse=True) @ hidden[:, :, None])[..., 0]
    real = torch.arange(nodes.size(1), device=nodes.device) < lengths[:, None]
    total = (F.softplus(torch.where(branches, scores, -scores)) * real).sum()
    return Loss(total, total.detach(), len(hidden))
