import torch

from heedful.nn.kv_cache import NO_CACHE, KVCache


def keys_values(rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 2, length, 5), torch.randn(rows, 2, length, 3)


def test_a_kv_cache_returns_all_it_was_given_and_selects_rows():
    cache, (keys, values) = KVCache(), keys_values(3, 11)
    parts = zip(keys.split([1, 1, 2, 3, 4], dim=2), values.split([1, 1, 2, 3, 4], dim=2), strict=True)
    assert all(map(torch.equal, [cache.update(*part) for part in parts][-1], (keys, values)))
    rows = torch.tensor([2, 2, 0, 1])
    cache.select(rows)
    new = keys_values(4, 1)
    for found, old, last in zip(cache.update(*new), (keys, values), new, strict=True):
        assert torch.equal(found, torch.cat([old[rows], last], dim=2))


def test_a_pruned_kv_cache_has_some_tokens_of_each_row_and_goes_on():
    cache, (keys, values) = KVCache(), keys_values(2, 7)
    columns = torch.tensor([[0, 3, 4], [1, 5, 6]])
    cache.update(keys, values)
    cache.prune(columns)
    found = cache.update(keys[:, :, :5], values[:, :, :5])
    for all_of_them, kept in zip((keys, values), found, strict=True):
        want = torch.stack([row[:, chosen] for row, chosen in zip(all_of_them, columns, strict=True)])
        assert torch.equal(kept[:, :, :3], want)
        assert torch.equal(kept[:, :, 3:], all_of_them[:, :, :5])


def test_without_a_cache_there_are_the_new_tokens_only():
    given = keys_values(3, 5)
    assert all(a is b for a, b in zip(NO_CACHE.update(*given), given, strict=True))
