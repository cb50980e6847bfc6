"""Log-probabilities of given target tokens under a model (teacher forcing), without a search.

G gaps, V vocabulary.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.architectures.model import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import ForwardPass
from heedful.predictors.filler import Filler
from heedful.text.tokenizer import MASK


def log_probs(reading: ForwardPass) -> list[float]:
    """Compute the log-probability of each target token in a forward pass (teacher forcing), in nats.

    Raises:
        InputError: the forward pass has no target tokens.
    """
    line = next((line.written for line in reading.lines.values() if line.written), None)
    if line is None:
        raise InputError("the model writes nothing, so that nothing can be given to it to write")
    chosen = torch.tensor(line.ids, device=next(reading.model.parameters()).device)
    return output(reading)[0].float().log_softmax(-1).gather(-1, chosen[:, None])[:, 0].tolist()


def gap_log_probs(filler: Filler, reading: ForwardPass) -> Float[Tensor, "G V"]:
    """Log-probability of every token id for each gap of a masked text; special tokens get -inf, as in `Filler.fill`."""
    gaps = torch.tensor([token == MASK for token in reading.lines["src"].read.ids])
    logits = output(reading)[0].float().cpu()[gaps]
    logits[:, : filler.tokenizer.first_piece] = -torch.inf
    return logits.log_softmax(-1)


@torch.no_grad()
def output(reading: ForwardPass) -> Tensor:
    """Run a prepared forward pass in evaluation mode without gradients, and return the model's output."""
    with evaluating(reading.model):
        return reading.run()
