"""Sources of a forward pass: a text as token ids, an image as patches, audio as frames, each position with a label.

B = 1 batch, N rows of the input, F features, H height, W width, C channels, S positions of the encoder, R rows and P
columns of patches, T frames, M mel bands, Q queries.
"""

import base64
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Shaped, UInt8
from torch import Tensor

from heedful.architectures.model import DecodingState, SourceToTarget, evaluating
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.media.images import png
from heedful.media.log_mel import hertz, log_mel, mel
from heedful.media.modality import AudioClips, Images, Modality, Videos
from heedful.predictors.captioner import Captioner
from heedful.predictors.predictor import described
from heedful.predictors.speech import SpeechRules, SpeechState
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import EOS, Tokenizer

CLASS = "<class>"  # label of the class token

# Prefixes of the Unicode names of letters in scripts without spaces between words.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

Input = str | bytes | Path | np.ndarray  # a text; or an image or audio as the bytes of a file, its path, or an array
Writer = Translator | Captioner | Transcriber  # a predictor that reads a source and writes tokens


@dataclass(frozen=True)
class Pieces:
    """Token ids with labels for pieces and words; in scripts without spaces each piece is a word."""

    ids: list[int]
    labels: list[str]  # of pieces
    words: list[str]
    word_of_piece: list[int]  # index into words

    @classmethod
    def numbered(cls, labels: list[str]) -> "Pieces":
        """Label positions that are not tokens, such as patches: their ids are their numbers, and each is a word."""
        numbers = list(range(len(labels)))
        return cls(ids=numbers, labels=labels, words=labels, word_of_piece=numbers)

    @classmethod
    def of(cls, ids: list[int], tokenizer: Tokenizer) -> "Pieces":
        """Label token ids with their pieces and words."""
        words: list[list[int]] = []
        numbers = tokenizer.word_of_piece(ids)
        for i, number, before in zip(ids, numbers, [None, *numbers], strict=False):
            # In scripts without spaces, such as Chinese and Thai, each piece begins a word.
            letter = unicodedata.name(tokenizer.decode([i])[:1] or " ", "")
            if number != before or letter.startswith(UNSPACED):
                words.append([])
            words[-1].append(i)
        return cls(
            ids=ids,
            labels=tokenizer.pieces(ids),
            words=[tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word)) for word in words],
            word_of_piece=[number for number, word in enumerate(words) for _ in word],
        )


@dataclass(frozen=True)
class ImageInput:
    """Image at the size that a model reads, and its grid of patches."""

    pixels: UInt8[np.ndarray, "H W C"]
    grid: tuple[int, int]  # rows and columns of patches
    before: int  # positions of the encoder before the patches: 1 for a class token, or 0
    frames: int = 1  # frames of a video, stacked vertically

    @property
    def labels(self) -> list[str]:
        """Row and column of each patch, from 1, such as "2,7"; before them, the label of the class token, if any."""
        rows, columns = self.grid
        patches = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
        return [CLASS] * self.before + patches

    @property
    def places(self) -> Float32[np.ndarray, "S 2"]:
        """Row and column of each patch in its frame, in patches; NaN for a class token."""
        rows, columns = self.grid
        # Frames are stacked into one tall image, but rows are counted within each frame.
        patches = np.mgrid[: rows // self.frames, :columns].reshape(2, -1).T
        token = np.full((self.before, 2), np.nan)
        return np.concatenate([token, np.tile(patches, (self.frames, 1))]).astype(np.float32)

    def on_patches(self, weights: Float32[np.ndarray, "Q S"]) -> Float32[np.ndarray, "Q R P"]:
        """Arrange the weights of each query in the grid of patches, without the weight of a class token."""
        return weights[:, self.before :].reshape(-1, *self.grid)

    def shares(self, box: Sequence[int | float]) -> Float32[np.ndarray, " S"]:
        """Return the share of each patch's area inside a box (left, top, right, bottom); 0 for a class token.

        The box is in pixels of the resized image; right and bottom are the first pixels outside.
        """
        left, top, right, bottom = box
        height, width, _ = self.pixels.shape
        rows, columns = self.grid
        # The share of a patch in a rectangle is the share of its rows times that of its columns: (R,), (P,) -> (R, P).
        shares = np.outer(overlaps(top, bottom, rows, height / rows), overlaps(left, right, columns, width / columns))
        return np.concatenate([np.zeros(self.before), shares.ravel()]).astype(np.float32)

    def described(self) -> dict[str, Any]:
        """Return JSON values for the page; "kind" distinguishes images from audio."""
        height, width, _ = self.pixels.shape
        rows, columns = self.grid
        return {
            "kind": "image",
            "height": height,
            "width": width,
            "rows": rows,
            "columns": columns,
            "before": self.before,
            "png": base64.b64encode(png(self.pixels)).decode(),
        }


def overlaps(begin: int | float, end: int | float, count: int, step: float) -> np.ndarray:
    """Return the share of each of `count` intervals of length `step`, from 0, that lies between `begin` and `end`."""
    starts = np.arange(count) * step
    return np.clip(np.minimum(end, starts + step) - np.maximum(begin, starts), 0, None) / step


@dataclass(frozen=True)
class AudioInput:
    """Log-mel spectrum of audio, shown even if the model reads samples, and the positions of the encoder."""

    spectrum: Float32[np.ndarray, "T M"]
    bands: list[float]  # centre of each mel band, in Hz
    hop: float  # seconds from one row of the spectrum to the next
    stride: int  # rows per encoder position
    positions: int

    @property
    def labels(self) -> list[str]:
        """Time at which each position of the encoder begins, such as "0.24 s"."""
        step = self.hop * self.stride
        digits = 2 if step >= 0.01 else 4
        return [f"{position * step:.{digits}f} s" for position in range(self.positions)]

    @property
    def places(self) -> Float32[np.ndarray, "S 1"]:
        """Time at which each position of the encoder begins, in seconds."""
        return np.arange(self.positions, dtype=np.float32)[:, None] * np.float32(self.hop * self.stride)

    def described(self) -> dict[str, Any]:
        frames, mels = self.spectrum.shape
        # One byte per value is enough for display.
        low, high = float(self.spectrum.min()), float(self.spectrum.max())
        shades = np.rint((self.spectrum - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
        return {
            "kind": "audio",
            "frames": frames,
            "mels": mels,
            "hop": self.hop,
            "stride": self.stride,
            "bands": [round(middle, 1) for middle in self.bands],
            "spectrum": base64.b64encode(shades.tobytes()).decode(),
        }


# Both have `labels` and `places` of the positions of the encoder, and `described()`, which returns JSON values for the
# page.
MediaInput = ImageInput | AudioInput


def media_input(modality: Modality, values: np.ndarray) -> MediaInput:
    """Return what the inspector shows of decoded pixels, samples or frames."""
    match modality:
        case Videos(config=config):
            # The first frame of each tubelet, stacked vertically: tubelets become patches of one tall image.
            frames = values[:: modality.video.tubelet]
            rows, columns = config.grid
            grid = len(frames) * rows, columns
            return ImageInput(np.concatenate(frames), grid, int(config.class_token), frames=len(frames))
        case Images(config=config):
            return ImageInput(values, config.grid, config.tokens - config.grid[0] * config.grid[1])
        case AudioClips(config=config):
            # Band m rises from edge m to edge m + 1 and falls to edge m + 2 (`mel_bands`), so edge m + 1 is its centre.
            edges = hertz(torch.linspace(0, float(mel(torch.tensor(config.rate / 2))), config.mels + 2))
            return AudioInput(
                spectrum=log_mel(torch.tensor(values), config).numpy(),
                bands=edges[1:-1].tolist(),
                hop=config.hop / config.rate,
                stride=config.stride,
                positions=modality.tokens(values),
            )
    raise TypeError(f"the inspector does not support {type(modality).__name__}")


@dataclass(frozen=True)
class Source:
    """Source of a forward pass: a text, an image or audio, without padding."""

    inputs: Shaped[Tensor, "B N *F"]
    padding_mask: Bool[Tensor, "B N"]
    read: Pieces  # labels of the positions after the input layer
    media: MediaInput | None = None


@dataclass(frozen=True)
class Writing:
    """Start of a search by an encoder-decoder: the source, the settings, and the first tokens of the output."""

    model: SourceToTarget
    tokenizer: Tokenizer  # of the output
    config: DecodeConfig
    source: Source
    limit: int  # maximum number of tokens in a search, including <eos>
    longest: int  # a given output must have fewer tokens than this, not counting <eos>
    rules: SpeechRules | None = None  # for the tokens of a transcript
    prompt: tuple[int, ...] = ()  # tokens after <bos> that the decoder reads before it writes, such as a language

    def begin(self) -> DecodingState:
        """Encode the source and feed the prompt, except for its last token; return the decoding state for a search."""
        state = self.model.start(self.source.inputs, self.source.padding_mask)
        if self.rules is None:
            return state
        state = SpeechState(state, self.rules)
        # Feed <bos> and the prompt without its last token, which becomes `begin`: the search itself feeds it.
        for token in self.prompt:
            state.prompt()
            state.begin = torch.full_like(state.begin, token)
        return state


def writing(subject: Any, value: Input) -> Writing:
    """Prepare the source and the search of a translator, captioner or transcriber."""
    match subject:
        case Translator():
            tokenizers = subject.tokenizers
            ids = tokenizers.source.encode(as_text(value))
            check_length(ids, subject.longest_source)
            inputs = torch.tensor([[*ids, EOS]], device=subject.device)
            read = Pieces.of([*ids, EOS], tokenizers.source)
            source = Source(inputs, torch.ones_like(inputs, dtype=torch.bool), read)
            limit, longest = subject.longest_output(len(ids)), subject.longest_output(subject.longest_source)
            return Writing(subject.model, tokenizers.target, subject.config, source, limit, longest)
        case Captioner():
            limit, source = subject.longest_output, media_source(subject, value)
            return Writing(subject.model, subject.tokenizers.target, subject.config, source, limit, limit + 1)
        case Transcriber():
            return transcript_writing(subject, media_source(subject, value))
    raise InputError(f"a {type(subject).__name__} does not generate text from a source, such as {described(value)}")


@torch.no_grad()
def transcript_writing(subject: Transcriber, source: Source) -> Writing:
    """Prepare a transcript without timestamps; a multilingual model detects the language if it is not set."""
    model, tokens, settings = subject.model, subject.tokens, subject.settings
    rules = SpeechRules.of(tokens, settings.transcribe, range(0), len(subject.tokenizer)).to(subject.device)
    codes, spoken = settings.transcribe.languages, []
    if codes:
        with evaluating(model):
            state = SpeechState(model.start(source.inputs, source.padding_mask), rules)
            # The first token after <bos> is the language (Radford et al. 2022, section 2.3).
            logits = state.prompt()[0, [tokens.languages[code] for code in codes]]
        language = settings.transcribe.language or codes[int(logits.argmax())]
        spoken = [tokens.languages[language], tokens.transcribe]
    prompt = tuple(token for token in (*spoken, tokens.without_times) if token is not None)
    limit = len(source.read.ids) + settings.decode.extra
    if (room := model.max_target_positions()) is not None:
        # <bos> and the prompt take positions of the decoder as well.
        limit = min(limit, room - 1 - len(prompt))
    return Writing(model, subject.tokenizer, settings.decode, source, limit, limit + 1, rules, prompt)


def media_source(subject: Any, value: Input) -> Source:
    (inputs, padding_mask), values = subject.reader.model_inputs(value)
    media = media_input(subject.reader.modality, values)
    return Source(inputs, padding_mask, Pieces.numbered(media.labels), media)


def as_text(value: Input) -> str:
    """Return the input of a text model; reject a file."""
    if not isinstance(value, str):
        raise InputError("the model reads text, not files; give a text")
    return value


def check_length(ids: list[int], limit: int, name: str = "the text") -> None:
    """Reject a list of token ids that is too long for the model: it must be shorter than `limit`."""
    if len(ids) >= limit:
        raise InputError(f"{name} has {len(ids)} tokens, but the model takes at most {limit - 1}; give one sentence")
