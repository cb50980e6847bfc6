import torch

from heedful.nn.sight import Sight

KEEP = torch.tensor([[True] * 7, [False, False] + [True] * 5, [True] * 5 + [False, False]])
DOCUMENTS = torch.tensor([[3, 3, 3, 5, 5, 8, 8], [0, 0, 0, 1, 1, 1, 2], [4, 4, 4, 4, 4, 9, 9]])


def test_positions_count_from_the_beginning_of_each_document():
    narrow = Sight(KEEP, 7, causal=True).within(DOCUMENTS)
    assert narrow.keys.tolist() == [[0, 1, 2, 0, 1, 0, 1], [0, 0, 0, 0, 1, 2, 0], [0, 1, 2, 3, 4, 0, 0]]
    assert torch.equal(narrow.position, narrow.keys)


def test_a_token_sees_the_real_tokens_of_its_own_document_only():
    for causal in (True, False):
        wide = Sight(KEEP, 7, causal=causal)
        mask = wide.within(DOCUMENTS).mask
        for row in range(3):
            for query in range(7):
                for key in range(7):
                    may = bool(KEEP[row, key]) and (key <= query or not causal)
                    assert mask[row, query, key] == (may and DOCUMENTS[row, query] == DOCUMENTS[row, key])


def test_the_last_queries_look_as_they_would_among_all():
    whole, last = (Sight(KEEP, queries, causal=True).within(DOCUMENTS) for queries in (7, 3))
    assert torch.equal(last.mask, whole.mask[:, -3:])
    assert torch.equal(last.position, whole.position[:, -3:])
    assert torch.equal(last.keys, whole.keys)


def test_the_wide_sight_stays_as_it_was():
    wide = Sight(KEEP, 7, causal=True)
    before = wide.mask.clone(), wide.keys.clone(), wide.position.clone()
    wide.within(DOCUMENTS)
    assert all(torch.equal(a, b) for a, b in zip(before, (wide.mask, wide.keys, wide.position), strict=True))
