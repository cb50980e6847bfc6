"""Proposes a first recipe for texts about pictures or sounds: a small encoder-decoder, trained from scratch.

Model and optimiser are those of a classifier of as many files, with a decoder beside the encoder.
"""

import math
from string import Template

from heedful.data.proposals.label_proposal import pieces
from heedful.data.proposals.media_proposal import (
    AUDIO,
    DATA,
    IMAGE,
    TRAINING,
    audio_config,
    image_config,
    of_audio,
    of_bad,
    of_image,
    settings,
    typical_tokens,
)
from heedful.data.proposals.media_survey import MediaSurvey, PictureFacts, SoundFacts
from heedful.data.proposals.pair_survey import Side
from heedful.data.proposals.proposal import MODEL, Keys, Machine, Texts, filled, quoted, room_for

SPARE = 1.5  # tokens of the longest text, times the estimate


def propose_captions(found: MediaSurvey[PictureFacts], language: str | None, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a model that writes captions of pictures, from a survey of these.

    Args:
        found: The survey of the pictures and their texts.
        language: Code of the language of the texts; None: it is not known.
        machine: The machine that training will run on.
        texts: Name and corpora for the recipe.
    """
    image, side = image_config(found.facts, machine), found.side
    values = {"task": "captioning", **of_image(image), **of_text(side)}
    values |= settings(len(found.facts), image.tokens + typical_text(side), image.tokens, machine)
    seen = f"{len(found.facts):,} pictures with texts"
    return filled(CAPTIONS, texts, values, seen=seen, told=of_language(language), bad=of_bad(found.bad))


def propose_transcripts(found: MediaSurvey[SoundFacts], language: str | None, machine: Machine, texts: Texts) -> str:
    """Write a first recipe, in TOML, for a recogniser of speech, from a survey of sounds; arguments as for captions."""
    audio, side = audio_config(found.facts), found.side
    values = {"task": "speech_recognition", **of_audio(audio), **of_text(side)}
    typical = typical_tokens(found.facts, audio) + typical_text(side)
    values |= settings(len(found.facts), typical, audio.longest, machine)
    seen = f"{len(found.facts):,} sounds with texts"
    return filled(TRANSCRIPTS, texts, values, seen=seen, told=of_language(language), bad=of_bad(found.bad))


def of_text(side: Side) -> Keys:
    """Choose the tokenizer, and how long a text may be."""
    longest = 10 * math.ceil(SPARE * float(side.tokens.max()) / 10)
    return {
        "kind": "character" if side.is_spaceless else "bpe",
        "vocab_size": room_for(side.alphabet) if side.is_spaceless else pieces(side),
        "longest": longest,
    }


def typical_text(side: Side) -> int:
    """Mean number of tokens of a text."""
    return round(float(side.tokens.mean()))


def of_language(language: str | None) -> str:
    """Write the key of [data] that names the language; nothing where it is not known."""
    return f"target_language = {quoted(language)}\n" if language else ""


TEXT = """
[data.filters]
max_tokens = $longest # files with a longer text are left out of training

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
"""

WRITER = (
    MODEL
    + """\
positions = "rotary"
decoder_layers = $layers
"""
    + TRAINING
    + """
[decode]
beam = 4
max_extra = $longest # the length of the longest text, in tokens
"""
)

CAPTIONS = Template(
    DATA
    + TEXT
    + IMAGE
    + """\
class_token = false
positions = "learned"
shift = $shift # in training, pictures are moved at random; 0 where texts tell exact places
"""
    + WRITER
)

TRANSCRIPTS = Template(DATA + TEXT + AUDIO + WRITER)
