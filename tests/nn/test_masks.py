import torch

from heedful.config.schema import ModelConfig
from heedful.nn.masks import AttentionMask, BeamLanes
from heedful.nn.positions import Positions

REAL = torch.tensor([[True] * 7, [False, False] + [True] * 5, [True] * 5 + [False, False]])
PADDED = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])
DOCUMENTS = torch.tensor([[3, 3, 3, 5, 5, 8, 8], [0, 0, 0, 1, 1, 1, 2], [4, 4, 4, 4, 4, 9, 9]])


def test_positions_count_real_tokens_on_either_side_of_padding():
    mask = AttentionMask(PADDED, 5, causal=False)
    assert mask.query_positions.tolist() == [[0, 1, 2, 2, 2], [0, 0, 1, 2, 3]]


def test_a_causal_mask_shows_the_past_and_the_present():
    mask = AttentionMask(torch.ones(1, 4, dtype=torch.bool), 4, causal=True).allowed
    assert mask[0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_the_last_queries_see_all_keys_before_them():
    mask = AttentionMask(PADDED, 2, causal=True).allowed
    assert mask.int().tolist() == [[[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]], [[0, 1, 1, 1, 0], [0, 1, 1, 1, 1]]]


def test_positions_count_from_the_beginning_of_each_document():
    packed = AttentionMask(REAL, 7, causal=True).within(DOCUMENTS)
    assert packed.key_positions.tolist() == [[0, 1, 2, 0, 1, 0, 1], [0, 0, 0, 0, 1, 2, 0], [0, 1, 2, 3, 4, 0, 0]]
    assert torch.equal(packed.query_positions, packed.key_positions)


def test_a_token_sees_the_real_tokens_of_its_own_document_only():
    for causal in (True, False):
        wide = AttentionMask(REAL, 7, causal=causal)
        mask = wide.within(DOCUMENTS).allowed
        for row in range(3):
            for query in range(7):
                for key in range(7):
                    may = bool(REAL[row, key]) and (key <= query or not causal)
                    assert mask[row, query, key] == (may and DOCUMENTS[row, query] == DOCUMENTS[row, key])


def test_the_last_queries_look_as_they_would_among_all():
    whole, last = (AttentionMask(REAL, queries, causal=True).within(DOCUMENTS) for queries in (7, 3))
    assert torch.equal(last.allowed, whole.allowed[:, -3:])
    assert torch.equal(last.query_positions, whole.query_positions[:, -3:])
    assert torch.equal(last.key_positions, whole.key_positions)


def test_the_mask_of_the_whole_batch_stays_as_it_was():
    wide = AttentionMask(REAL, 7, causal=True)
    before = wide.allowed.clone(), wide.key_positions.clone(), wide.query_positions.clone()
    wide.within(DOCUMENTS)
    assert all(
        torch.equal(a, b) for a, b in zip(before, (wide.allowed, wide.key_positions, wide.query_positions), strict=True)
    )


NO_POSITIONS = Positions(ModelConfig(), causal=True)


def read(lanes: BeamLanes) -> list[list[list[int]]]:
    """Read one more token in each lane; for each row the positions of the tokens that it sees."""
    inputs = lanes.append(NO_POSITIONS, torch.zeros(()))
    seen = (inputs.attention_bias == 0).expand(len(lanes.allowed), -1, -1, -1)[:, 0]
    return [[lanes.key_positions[i][lane].tolist() for lane in sentence] for i, sentence in enumerate(seen)]


def test_a_lane_sees_the_tokens_that_it_descends_from_and_no_others():
    lanes = BeamLanes(2, torch.device("cpu"))
    assert read(lanes) == [[[0]], [[0]]]
    assert lanes.select(torch.tensor([0, 0, 0, 1, 1, 1])).tolist() == [0, 1]
    assert read(lanes) == [[[0, 1]] * 3] * 2
    assert lanes.allowed[0].int().tolist() == [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    assert lanes.select(torch.tensor([2, 2, 0, 3, 4, 5])).tolist() == [0, 1]
    assert read(lanes) == [[[0, 1, 2]] * 3] * 2
    assert lanes.allowed[0].int().tolist() == [[1, 0, 0, 1, 1, 0, 0], [1, 0, 0, 1, 0, 1, 0], [1, 1, 0, 0, 0, 0, 1]]


def test_rows_that_do_not_stand_evenly_become_sentences_of_their_own():
    lanes = BeamLanes(3, torch.device("cpu"))
    read(lanes)
    assert lanes.select(torch.tensor([2, 0, 0, 1])).tolist() == [2, 0, 0, 1]
    assert lanes.width == 1
    assert read(lanes) == [[[0, 1]]] * 4


def test_tokens_that_no_lane_sees_are_forgotten_when_they_are_half_of_all():
    lanes = BeamLanes(2, torch.device("cpu"))
    read(lanes)
    lanes.select(torch.tensor([0] * 5 + [1] * 5))
    read(lanes)
    lanes.select(torch.tensor([3, 3, 3, 3, 2, 5, 5, 5, 5, 5]))
    columns = lanes.prune()
    assert columns is not None
    assert columns.tolist() == [[0, 3, 4], [0, 1, 2]]
    assert lanes.allowed.int().tolist() == [[[1, 0, 1]] * 4 + [[1, 1, 0]], [[1, 1, 0]] * 5]
    assert lanes.prune() is None
