import numpy as np
import torch

from heedful.config.schema import ModelConfig
from heedful.losses import reference_cross_entropy
from heedful.models import EncoderDecoder
from heedful.tasks.sequence_to_sequence import collate, loss

SOURCE = np.array([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGET = np.array([[9, 3, 0], [10, 11, 3]])


def test_the_decoder_reads_the_target_shifted_right_behind_bos():
    batch = collate(SOURCE, TARGET, torch.device("cpu"))
    assert batch.target_in.tolist() == [[2, 9, 3], [2, 10, 11]]
    assert batch.target_out.tolist() == TARGET.tolist()
    assert batch.source_keep.int().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch.target_keep.int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert (batch.source_tokens, batch.target_tokens, batch.tokens) == (6, 5, 11)


def test_the_loss_counts_real_target_tokens_and_nothing_else():
    torch.manual_seed(0)
    model = EncoderDecoder(ModelConfig(d_model=16, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1), 13, 13).eval()
    got = loss(model, collate(SOURCE, TARGET, torch.device("cpu")), 0.1)
    rows = []
    for source, target in ((SOURCE[:1], TARGET[:1, :2]), (SOURCE[1:, :2], TARGET[1:])):
        batch = collate(source, target, torch.device("cpu"))
        hidden = model.hidden(batch.source, batch.source_keep, batch.target_in, batch.target_keep)
        rows.append(reference_cross_entropy(hidden[0], model.output.weight, batch.target_out[0], 0.1))
    torch.testing.assert_close(got.sum, rows[0].sum + rows[1].sum)
    torch.testing.assert_close(got.nll, rows[0].nll + rows[1].nll)
    assert got.count == 5
