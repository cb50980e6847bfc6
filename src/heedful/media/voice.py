"""Voice activity detection, by silero-vad or, without it, by digital silence: stretches of speech between pauses.

The network (Silero Team 2021-2025, MIT licence) comes from the package silero-vad: a Fourier transform, four
convolutions and an LSTM compute the probability of speech for each 32 ms of audio at 16 kHz.

N samples, C chunks of 512 samples, F frequencies, D features.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float32
from safetensors.torch import load_file
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.media.audio import Samples, resampled
from heedful.media.audio_reader import AudioReader

PACKAGE, WEIGHTS = "silero_vad", "data/silero_vad_16k.safetensors"
RATE = 16_000  # samples per second that the network expects
CHUNK, CONTEXT, MIRRORED = 512, 64, 64  # samples of a chunk, before it from the last chunk, and mirrored at its end
PIECE = 1024  # chunks processed at a time: 33 seconds
SPEECH, PAUSE = 0.4, 0.25  # speech begins at or above the first probability, and ends below the second
MIN_RATE = 8000  # minimum samples per second of audio in which the network detects speech
MAX_PAUSE = 2.0  # seconds without speech within a stretch
MARGIN = 0.4  # seconds before and after speech that belong to its stretch
MIN_CHUNKS = 3  # in speech; anything shorter is a click

Stretches = list[tuple[int, int]]  # beginning and end, in samples


class SpeechNetwork(nn.Module):
    """Network of silero-vad for 16 kHz; its modules have the names that silero-vad's weight file uses."""

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def features(self, chunks: Float32[Tensor, "C N"]) -> Float32[Tensor, "C D"]:
        # Convolving with sines and cosines is a Fourier transform: (C, 258, 4), real parts before imaginary parts.
        spectrum = self.stft_conv(F.pad(chunks[:, None], (0, MIRRORED), mode="reflect"))
        # (C, 258, 4) -> (C, 129, 4): magnitudes. The strides of conv2 and conv3 then reduce the four frames to one.
        x = torch.linalg.vector_norm(spectrum.unflatten(1, (2, -1)), dim=1)
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x).relu()
        return x.squeeze(-1)

    def forward(
        self, features: Float32[Tensor, "C D"], state: tuple[Tensor, Tensor] | None
    ) -> tuple[Float32[Tensor, " C"], tuple[Tensor, Tensor]]:
        """Compute the probability of speech in consecutive chunks, and the state after them."""
        hidden = []
        for one in features.unsqueeze(1):
            output, memory = self.lstm_cell(one, state)
            state = output, memory
            hidden.append(output)
        if state is None:
            raise ValueError("at least one chunk is needed")
        return self.final_conv(torch.cat(hidden).relu()[..., None]).sigmoid().flatten(), state


def network_weights() -> Path | None:
    """Return the file with silero-vad's weights; None if it is not installed."""
    spec = find_spec(PACKAGE)
    paths = [Path(folder, WEIGHTS) for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((path for path in paths if path.is_file()), None)


@lru_cache(maxsize=1)
def speech_network() -> SpeechNetwork:
    weights = network_weights()
    if weights is None:
        raise InputError("speech is detected with silero-vad, which is not installed: pip install 'heedful[speech]'")
    with torch.random.fork_rng(devices=[]):  # initialisation must not advance the caller's generator
        network = SpeechNetwork()
    network.load_state_dict(load_file(weights))
    return network.eval().requires_grad_(False)


@torch.inference_mode()
def speech_probabilities(pieces: Iterable[Samples]) -> Iterator[Float32[np.ndarray, " C"]]:
    """Compute the probability of speech for each chunk of 32 ms.

    Args:
        pieces: Samples at 16 kHz in order, each piece except the last consisting of whole chunks.
    """
    network, state = speech_network(), None
    context = torch.zeros(CONTEXT)
    for piece in pieces:
        samples = F.pad(torch.from_numpy(piece), (0, -len(piece) % CHUNK))
        # Each chunk is preceded by the end of the previous one.
        chunks = torch.cat([context, samples]).unfold(0, CONTEXT + CHUNK, CHUNK)
        context = samples[-CONTEXT:]
        probabilities, state = network(network.features(chunks), state)
        yield probabilities.numpy()


def speech_stretches(audio: AudioReader, *, network: bool) -> Stretches:
    """Return the stretches of audio with speech, split at pauses longer than `MAX_PAUSE`, with a margin around each.

    Without the `network`, or at a sample rate below `MIN_RATE`, everything except digital silence counts as speech.
    """
    size = max(1, round(CHUNK * audio.rate / RATE))  # samples of a chunk of 32 ms
    pieces = (audio.read(begin, begin + size * PIECE) for begin in range(0, audio.length, size * PIECE))
    if network and audio.rate >= MIN_RATE:
        min_chunks, margin = MIN_CHUNKS, MARGIN
        is_speech, chunks = False, []
        for probabilities in speech_probabilities(resampled(piece, audio.rate, RATE) for piece in pieces):
            for probability in probabilities.tolist():
                # Hysteresis: speech begins where it is likely, and ends where it is unlikely.
                is_speech = probability >= (PAUSE if is_speech else SPEECH)
                chunks.append(is_speech)
        speech = np.array(chunks, dtype=bool)
    else:
        min_chunks, margin = 1, MAX_PAUSE / 2
        audible = [np.add.reduceat(piece != 0, np.arange(0, len(piece), size)) > 0 for piece in pieces]
        speech = np.concatenate([np.zeros(0, dtype=bool), *audible])

    # The chunks in which each run of speech begins, and before which it ends: (runs, 2).
    edges = np.flatnonzero(np.diff(speech.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    stretches: Stretches = []
    for first, last in edges.tolist():
        if last - first < min_chunks:
            continue
        begin, end = first * size, last * size
        # A short pause does not end a stretch: a split within a sentence would deprive the model of context.
        if stretches and begin - stretches[-1][1] <= MAX_PAUSE * audio.rate:
            begin = stretches.pop()[0]
        stretches.append((begin, end))
    around = round(margin * audio.rate)
    return [(max(0, begin - around), min(audio.length, end + around)) for begin, end in stretches]
