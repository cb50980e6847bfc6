"""Error rate of word alignments."""

from collections.abc import Collection, Iterable

from heedful.errors import InputError

Links = Collection[tuple[int, int]]  # the numbers of a source and a target word


def alignment_error_rate(alignments: Iterable[Links], gold: Iterable[Links]) -> float:
    """Compute the alignment error rate of sentence pairs (Och & Ney 2003): 0 is perfect, and 1 is all wrong.

    All gold links are sure links: the rate is 1 - 2 |A & G| / (|A| + |G|) for the links A and G of all pairs.
    """
    alignments, gold = [set(links) for links in alignments], [set(links) for links in gold]
    if len(alignments) != len(gold):
        raise InputError(f"there are {len(alignments):,} alignments, but {len(gold):,} gold alignments; give one each")
    total = sum(map(len, [*alignments, *gold]))
    common = sum(len(links & correct) for links, correct in zip(alignments, gold, strict=True))
    return 1 - 2 * common / total if total else 0.0
