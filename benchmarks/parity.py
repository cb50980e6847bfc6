"""Parity of converted real models with the original toolkits: python benchmarks/parity.py [--help]

- A BERT in Hugging Face's format with its tokenizer, such as all-MiniLM-L6-v2: states and sentence vectors (normalised
  means of states) of the first sentences of a text, heedful's and those of `transformers`, float32 on the CPU.
- ct2-aren-transliteration, OpenNMT in CTranslate2's format: log-probabilities by CTranslate2, noted below as EXPECTED.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

from heedful.architectures import EncoderDecoder, SentenceEncoder, load_weights
from heedful.config.schema import DecodeConfig
from heedful.convert import FORMATS
from heedful.data.readers.files import read_lines
from heedful.predictors.translator import Translator
from heedful.text.sequences import pad, sequence

BEAM = DecodeConfig(beam=2, n_best=2, penalty="average", alpha=1.0)
EXPECTED = {  # letters -> outputs with their scores, to four places
    "آ ت ز م و ن": {"a t z m o n": -0.1517, "a t z u m o n": -0.2660},
    "آ ر ث ر": {"a r t h e r": -0.0468},
    "آ ت ش ي س و ن": {"a c h i s o n": -0.1392},
}
TOKENS = [-0.1060, -0.0654, -0.0560, -0.4480, -0.2307, -0.0922, -0.0635]  # of "atzmon" and its end

Row = tuple[str, float]


def bert(folder: Path, sentences: list[str]) -> list[Row]:
    from transformers import AutoTokenizer, BertModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    converted = FORMATS["bert"].read(folder, "ranking")
    tokenizer, vocab = converted.tokenizers.source, len(converted.tokenizers.source)
    ours = SentenceEncoder(converted.recipe.model, vocab).eval()
    load_weights(ours, converted.weights)
    theirs, their_tokenizer = BertModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    rows = [sequence(tokenizer.encode(sentence), longest=converted.recipe.data.max_length) for sentence in sentences]
    ids, padding_mask = (torch.from_numpy(array) for array in pad(rows))
    batch = their_tokenizer(sentences, return_tensors="pt", padding=True, truncation=True)
    real = batch["attention_mask"][:, :, None]
    assert torch.equal(padding_mask, real[:, :, 0].bool())
    with torch.inference_mode():
        found, vectors = (
            ours.backbone(ids, padding_mask, torch.zeros_like(ids)),
            ours(ids, padding_mask, torch.zeros_like(ids)),
        )
        expected = theirs(**batch).last_hidden_state
    their_vectors = F.normalize((expected * real).sum(1) / real.sum(1))
    name = f"{folder.name}, {len(sentences)} sentences, {int(padding_mask.sum()):,} tokens"
    differences = {"states": (found - expected)[padding_mask], "sentence vectors": vectors - their_vectors}
    return [(f"{name}: {key}", float(values.abs().max())) for key, values in differences.items()]


def opennmt(folder: Path) -> list[Row]:
    converted = FORMATS["opennmt"].read(folder)
    model = EncoderDecoder(converted.recipe.model, *(len(t) for t in vars(converted.tokenizers).values())).eval()
    load_weights(model, converted.weights)
    translator, rows = Translator(model, converted.tokenizers, BEAM), []
    for translation, expected in zip(translator.translate_lines(EXPECTED), EXPECTED.values(), strict=True):
        for found, (text, score) in zip(translation.alternatives, expected.items(), strict=False):
            assert found.text == text
            rows.append((f"{folder.name}: score of {text.replace(' ', '')}", abs(found.hypothesis.score - score)))
            if text == "a t z m o n":
                apart = [abs(a - b) for a, b in zip(found.hypothesis.token_scores, TOKENS, strict=True)]
                rows.append((f"{folder.name}: tokens of atzmon", max(apart)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with ct2-aren-transliteration")
    parser.add_argument("--bert", type=Path, help="the folder of a BERT")
    parser.add_argument("--text", type=Path, help="sentences for it, one a line, or TSV with the sentence first")
    parser.add_argument("--count", type=int, default=100, help="how many sentences")
    options = parser.parse_args()
    rows = opennmt(options.data / "ct2-aren-transliteration")
    if options.bert:
        lines = (line.split("\t")[0] for _, line in zip(range(options.count), read_lines(options.text), strict=False))
        rows += bert(options.bert, list(lines))
    table = Table("largest difference of", "", box=None)
    table.columns[1].justify = "right"
    for name, value in rows:
        table.add_row(name, f"{value:.1e}")
    Console(highlight=False).print(table)


main()
