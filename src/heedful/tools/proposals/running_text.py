"""Running text: its survey, and the first recipe of a GPT, which continues text, or a BERT, which fills in words."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template

from heedful.data.readers.documents import SECTION_BREAK, Document
from heedful.data.readers.files import ending_of
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.tools.proposals.pairs import SPACELESS, main_script
from heedful.tools.proposals.proposal import (
    ADAMW,
    ADAMW_OF_BERT,
    BEGINNING,
    ENCODER,
    MODEL,
    TRAINING,
    Machine,
    Size,
    Texts,
    choose,
    filled,
    room_for,
    save_interval,
)


@dataclass(frozen=True)
class TextSurvey:
    """Statistics of a file or a folder of running text: lines, paragraphs, sections, characters, words, letters."""

    files: int
    is_rows: bool  # whether it is a table or a list of objects, each of whose rows is a document
    lines: int  # lines or rows, blank ones left out
    paragraphs: int  # between blank lines; rows are both paragraphs and sections
    sections: int  # between two or more blank lines
    characters: int
    words: int
    letters: Counter[str]
    longest: int  # characters of the longest line
    longest_at: str  # file and line of the longest line
    beginning: str  # a few of the first words

    @property
    def script(self) -> str | None:
        return main_script(self.letters)

    @property
    def is_spaceless(self) -> bool:
        """True if spaces do not separate the words of the text, as in Chinese."""
        return self.script in SPACELESS or self.characters > 15 * self.words

    @property
    def pieces(self) -> int:
        return round(0.7 * self.characters if self.is_spaceless else 1.3 * self.words)


def survey_text(texts: Iterable[Document], name: str) -> TextSurvey:
    """Survey a file or a folder of running text, which is read once, a line at a time."""
    files: set[Path] = set()
    letters: Counter[str] = Counter()
    lines = paragraphs = sections = characters = words = longest = 0
    longest_at = beginning = ""
    before: tuple[Path | None, int] = (None, 0)
    for text, file, line in texts:
        blank = line - before[1] - 1 if file == before[0] and ending_of(file) not in READERS else SECTION_BREAK
        before = (file, line)
        files.add(file)
        lines += 1
        paragraphs += blank > 0
        sections += blank >= SECTION_BREAK
        characters += len(text) + 1
        words += len(text.split())
        letters.update(text)
        beginning = beginning or " ".join(text.split()[:3])[:20]
        if len(text) > longest:
            longest, longest_at = len(text), f"{file}, line {line}"
    if not lines:
        raise InputError(f"{name}: there is no text in it; check the file")
    is_rows = all(ending_of(file) in READERS for file in files)
    return TextSurvey(
        len(files), is_rows, lines, paragraphs, sections, characters, words, letters, longest, longest_at, beginning
    )


CPU_SECONDS = 3600  # the longest training without a GPU
MAX_CHARACTERS = 2_000_000  # of a text that is read by characters: of more, pieces of words can be learned
MIN_PASSES = 4  # over the text, where the size has as many; a smaller model is better than fewer
MIN_UPDATES = 1000
SAVES = 20  # checkpoints in a run, each after a validation
MIN_DOCUMENTS = 20  # from which passages of two can be taken
MIN_SECTIONS = 200  # so that the twentieth that is held out has several, although chapters differ in length


@dataclass(frozen=True)
class TextSize(Size):
    """The size of a GPT or a BERT, its context and other training settings, for a proposed recipe."""

    context: int  # tokens
    batch_tokens: int

    def work(self, vocab_size: int) -> float:
        """Floating-point operations to train on one token: 6 for each weight that the token meets."""
        return 6.0 * (self.layers * self.block + vocab_size * self.d_model)


GPT_SIZES = (
    TextSize("tiny", 300_000, 128, 512, 4, 4, 0.1, 1e-3, 100, 10, 128, 1024),
    TextSize("small", 20_000_000, 256, 1024, 4, 6, 0.1, 1.5e-3, 150, 10, 256, 4096),
    TextSize("medium", 200_000_000, 512, 2048, 8, 8, 0.1, 1e-3, 500, 5, 512, 16_384, gpu_memory=8),
    TextSize("gpt2", math.inf, 768, 3072, 12, 12, 0.1, 6e-4, 2000, 3, 1024, 32_768, gpu_memory=30),
)
BERT_SIZES = (
    TextSize("tiny", 20_000_000, 128, 512, 2, 2, 0.0, 2e-3, 500, 40, 128, 2048),
    TextSize("mini", 200_000_000, 256, 1024, 4, 4, 0.1, 1e-3, 1000, 20, 128, 16_384, gpu_memory=4),
    TextSize("small", math.inf, 512, 2048, 8, 4, 0.1, 5e-4, 4000, 10, 256, 32_768, gpu_memory=12),
)


def propose_gpt(survey: TextSurvey, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a GPT, from a survey of the text and the machine."""
    by_character = survey.characters <= MAX_CHARACTERS
    vocab_size = room_for(len(survey.letters)) if by_character else pieces_for(survey.characters)
    tokens = survey.characters if by_character else survey.pieces
    size = choose_size(GPT_SIZES, survey.characters, tokens, vocab_size, machine)
    values = {"kind": "character" if by_character else "bpe", "min_lr": float(f"{size.lr / 10:.1e}")}
    values |= sizes(size, tokens, vocab_size, machine)
    return filled(GPT, texts, values, seen=f"{survey.characters:,} characters of text")


def propose_bert(survey: TextSurvey, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a BERT, from a survey of the text and the machine."""
    if survey.is_rows:
        documents, count = "file", survey.lines
    elif survey.sections >= MIN_SECTIONS:
        documents, count = "section", survey.sections
    elif survey.files < MIN_DOCUMENTS:
        documents, count = "paragraph", survey.paragraphs
    else:
        documents, count = "file", survey.files
    several_sentences = not survey.is_rows and survey.characters / count >= 500
    vocab_size = room_for(len(survey.letters)) if survey.is_spaceless else pieces_for(survey.characters)
    size = choose_size(BERT_SIZES, survey.characters, survey.pieces, vocab_size, machine)
    values = {"kind": "character" if survey.is_spaceless else "wordpiece", "documents": documents}
    values |= {"next_sentence": count >= MIN_DOCUMENTS and several_sentences}
    values |= sizes(size, survey.pieces, vocab_size, machine)
    return filled(BERT, texts, values, seen=f"{survey.characters:,} characters of text")


def choose_size(
    among: tuple[TextSize, ...], characters: int, tokens: int, vocab_size: int, machine: Machine
) -> TextSize:
    """Choose the GPT or BERT size that suits the amount of text, or a smaller one that the machine can train well."""

    def work(size: TextSize) -> float:
        return min(size.passes, MIN_PASSES) * tokens * size.work(vocab_size)

    return choose(among, characters, machine, CPU_SECONDS, work)


def pieces_for(characters: int) -> int:
    """Choose the vocabulary size for subwords: 8000 for some novels, fewer where each would be met too seldom."""
    return min(8000, max(1000, 1000 * round(characters / 250_000)))


def sizes(size: TextSize, tokens: int, vocab_size: int, machine: Machine) -> dict[str, object]:
    """Values for a recipe of a GPT or a BERT: sizes of model and vocabulary, and the number of updates.

    The updates make some passes over the text, but are not too few, and take no longer than the machine should.
    """
    updates = max(MIN_UPDATES, size.passes * tokens / size.batch_tokens)
    affordable = machine.budget(CPU_SECONDS) / (size.work(vocab_size) * size.batch_tokens)
    every = save_interval(min(updates, affordable), SAVES)
    passes = SAVES * every * size.batch_tokens / tokens
    return {
        **vars(size),
        "size": size.name,
        "vocab_size": vocab_size,
        "more_dropout": round(size.dropout + 0.1, 1),
        "max_updates": SAVES * every,
        "warmup": min(size.warmup, 2 * every),
        "every": every,
        "passes": round(passes) if passes >= 2 else round(passes, 1),
    }


GPT = Template(
    BEGINNING
    + """\
name = $name
task = "language_model" # a GPT: what comes next?

[data]
max_length = $context # tokens of context
bad_utf8 = $bad_utf8

$corpora

[tokenizer]
kind = $kind # little text is learned best by characters; "bpe" makes pieces of words of more
vocab_size = $vocab_size # an upper bound
"""
    + MODEL
    + """\
family = "decoder"
decoder_layers = $layers
positions = "rotary" # learns faster than "learned", as GPT-2 has them
attention_bias = false
bias = false
init = "scaled"
"""
    + ADAMW
    + """\
betas = [0.9, 0.99]
eps = 1e-8
weight_decay = 0.1
schedule = "cosine"
min_lr = $min_lr
"""
    + TRAINING
    + """
[generate]
temperature = 0.8 # 1.0 is more varied, 0 always takes the most likely token
"""
)

BERT = Template(
    BEGINNING
    + """\
name = $name
task = "masked_lm" # a BERT: which words are hidden?

[data]
documents = $documents # "section" ends at two blank lines, "paragraph" at one, "file" where a file ends
max_length = $context # tokens that are read at once
bad_utf8 = $bad_utf8

$corpora

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound; with more text more pieces are worth having
lowercase = true
mask = true

[masking]
next_sentence = $next_sentence # whether to learn as well which passages follow each other
"""
    + ENCODER
    + """\
output_bias = true
"""
    + ADAMW_OF_BERT
    + TRAINING
)
