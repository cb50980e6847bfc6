"""Train word vectors with gensim: reads a store of words and settings, in JSON, from standard input; prints JSON."""

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec


def main(store: str, dtype: str, words: list[str], settings: dict, file: str) -> None:
    ids = np.memmap(Path(store) / "ids.bin", dtype=dtype, mode="r")
    offsets = np.load(Path(store) / "offsets.npy")
    documents = [ids[begin : end - 1].tolist() for begin, end in pairwise(offsets)]
    sentences = [[words[i] for i in document] for document in documents if document]
    count = sum(map(len, sentences))
    model = Word2Vec(**settings)
    model.build_vocab(sentences)
    start = time.perf_counter()
    model.train(sentences, total_examples=len(sentences), epochs=settings["epochs"])
    seconds = time.perf_counter() - start
    model.wv.save_word2vec_format(file, binary=True)
    print(json.dumps({"words": settings["epochs"] * count, "seconds": seconds}))


if __name__ == "__main__":
    main(**json.load(sys.stdin))
