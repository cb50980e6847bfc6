"""Where a recording holds speech: stretches between pauses, by the network of silero-vad, or by digital silence alone.

The network (Silero Team 2021-2025, MIT licence) is read from the package silero-vad: a Fourier transform, four
convolutions and an LSTM give a probability of speech for each 32 ms of audio at 16 kHz.
N samples, C chunks of 512 samples, F frequencies, D features.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32
from safetensors.torch import load_file
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.media.audio import Samples, resampled
from heedful.media.recordings import Recording

PACKAGE, WEIGHTS = "silero_vad", "data/silero_vad_16k.safetensors"
RATE = 16_000  # samples a second that the network reads
CHUNK, CONTEXT, MIRRORED = 512, 64, 64  # samples: of a chunk, of the one before it, and mirrored at its end
PIECE = 1024  # chunks that are computed at a time: 33 seconds
SPEECH, PAUSE = 0.4, 0.25  # probabilities: speech begins from the one, and ends below the other
MIN_RATE = 8000  # samples a second of a recording in which the network can hear speech
MAX_PAUSE = 2.0  # seconds without speech that stay in a stretch
MARGIN = 0.4  # seconds before and after speech that belong to its stretch
MIN_CHUNKS = 3  # chunks: less speech is a click

Stretches = list[tuple[int, int]]  # begin and end, in samples of the recording


class SpeechNetwork(nn.Module):
    """The network of silero-vad for 16 kHz, under the names of its weights."""

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
        # Convolving with sines and cosines is a Fourier transform: (C, 258, T), all real parts and then the imaginary.
        spectrum = self.stft_conv(F.pad(chunks[:, None], (0, MIRRORED), mode="reflect"))
        x = torch.linalg.vector_norm(spectrum.unflatten(1, (2, -1)), dim=1)
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x).relu()
        return x.squeeze(-1)

    def forward(
        self, features: Float32[Tensor, "C D"], state: tuple[Tensor, Tensor] | None
    ) -> tuple[Float32[Tensor, " C"], tuple[Tensor, Tensor]]:
        """Compute the probability of speech in each of some chunks, one after another, and the state after them."""
        hidden = []
        for one in features.unsqueeze(1):
            output, memory = self.lstm_cell(one, state)
            state = output, memory
            hidden.append(output)
        if state is None:
            raise ValueError("there are no chunks")
        return self.final_conv(torch.cat(hidden).relu()[..., None]).sigmoid().flatten(), state


def has_network() -> bool:
    return _weights() is not None


def _weights() -> Path | None:
    spec = find_spec(PACKAGE)
    places = [Path(folder, WEIGHTS) for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((place for place in places if place.is_file()), None)


@lru_cache(maxsize=1)
def speech_network() -> SpeechNetwork:
    weights = _weights()
    if weights is None:
        raise InputError(
            "speech is detected by the network of silero-vad, which is not installed: pip install 'heedful[speech]'"
        )
    with torch.random.fork_rng(devices=[]):  # random initial weights do not advance the caller's generator
        network = SpeechNetwork()
    network.load_state_dict(load_file(weights))
    return network.eval().requires_grad_(False)


@torch.inference_mode()
def speech_probabilities(pieces: Iterable[Samples]) -> Iterator[Float32[np.ndarray, " C"]]:
    """Compute the probability of speech for each chunk of 32 ms.

    Args:
        pieces: samples at 16 kHz in order, each piece but the last of whole chunks.
    """
    network, state = speech_network(), None
    context = torch.zeros(CONTEXT)
    for piece in pieces:
        samples = F.pad(torch.from_numpy(piece), (0, -len(piece) % CHUNK))
        # Each chunk is heard with the end of the one before it.
        chunks = torch.cat([context, samples]).unfold(0, CONTEXT + CHUNK, CHUNK)
        context = samples[-CONTEXT:]
        probabilities, state = network(network.features(chunks), state)
        yield probabilities.numpy()


def speech_stretches(recording: Recording, *, network: bool) -> Stretches:
    """Find the stretches of a recording that hold speech: between them lie pauses of more than `MAX_PAUSE`.

    Without the network, whatever is not digital silence counts as speech.
    """
    if network and recording.rate >= MIN_RATE:
        return _stretches(_speech(recording), recording)
    # without the network: chunks with a sample that is not zero
    size = chunk_size(recording.rate)
    sounding = [np.add.reduceat(piece != 0, np.arange(0, len(piece), size)) > 0 for piece in _pieces(recording)]
    chunks = np.concatenate([np.zeros(0, dtype=bool), *sounding])
    return _stretches(chunks, recording, min_chunks=1, margin=MAX_PAUSE / 2)


def _pieces(recording: Recording) -> Iterator[Samples]:
    """Read a recording piece by piece; each holds as many chunks of 32 ms as the network computes at a time."""
    size = chunk_size(recording.rate) * PIECE
    for begin in range(0, recording.length, size):
        yield recording.read(begin, begin + size)


def chunk_size(rate: int) -> int:
    return max(1, round(CHUNK * rate / RATE))


def _speech(recording: Recording) -> Bool[np.ndarray, " C"]:
    """True for chunks in which the network hears speech: it begins where that is likely, and ends where it is not."""
    pieces = (resampled(piece, recording.rate, RATE) for piece in _pieces(recording))
    speaking, chunks = False, []
    for probabilities in speech_probabilities(pieces):
        for probability in probabilities.tolist():
            speaking = probability >= (PAUSE if speaking else SPEECH)
            chunks.append(speaking)
    return np.array(chunks, dtype=bool)


def _stretches(
    speech: Bool[np.ndarray, " C"], recording: Recording, min_chunks: int = MIN_CHUNKS, margin: float = MARGIN
) -> Stretches:
    """Join chunks with speech to stretches, in samples of the recording."""
    size, rate = chunk_size(recording.rate), recording.rate
    # Where speech begins and ends, in turn: (stretches, 2).
    edges = np.flatnonzero(np.diff(speech.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    runs = [(begin * size, end * size) for begin, end in edges.tolist() if end - begin >= min_chunks]
    stretches: Stretches = []
    for begin, end in runs:
        joins = stretches and begin - stretches[-1][1] <= MAX_PAUSE * rate
        stretches.append((stretches.pop()[0] if joins else begin, end))
    around = round(margin * rate)
    return [(max(0, begin - around), min(recording.length, end + around)) for begin, end in stretches]
