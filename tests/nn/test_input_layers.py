"""Input layers: what a stack computes of real inputs depends on no padding, whatever the inputs are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from heedful.architectures import EncoderOnly, SequenceClassifier
from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import ModelConfig
from heedful.media.modality import sample_frames
from heedful.nn.embedding import Embedding, InputLayer
from heedful.nn.frames import ConvolutionalFrames, LinearFrames, frame_embedding
from heedful.nn.patches import PatchEmbedding, TubeletEmbedding
from shown_modules import rows

Draw = Callable[[list[int]], list[torch.Tensor]]
SHAPE: dict[str, Any] = {"family": "encoder", "d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 2}


class Strided(InputLayer):
    """A convolution with a stride over rows of features, as before a recogniser of speech."""

    def __init__(self, features: int, config: ModelConfig) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(features, config.d_model, kernel_size=3, stride=2, padding=1)

    def embed(self, inputs, padding_mask):
        inputs = inputs.masked_fill(~padding_mask[..., None], 0)
        return self.convolution(inputs.transpose(1, 2)).transpose(1, 2), padding_mask[:, ::2]


def of_rows(lengths: list[int]) -> list[torch.Tensor]:
    return [torch.randn(length, 3) for length in lengths]


def of_tokens(lengths: list[int]) -> list[torch.Tensor]:
    return [torch.randint(4, 29, (length,)) for length in lengths]


def of_pictures(lengths: list[int]) -> list[torch.Tensor]:
    return [torch.randn(4 * length, 20, 3) for length in lengths]


def picture_encoder(**settings: Any) -> EncoderOnly[PatchEmbedding]:
    image = ImageConfig(size=(44, 20), patch=4, **settings)
    return EncoderOnly(ModelConfig(**SHAPE), PatchEmbedding(image, 14)).eval()


def of_videos(lengths: list[int]) -> list[torch.Tensor]:
    return [torch.randn(3 * length, 4, 20, 3) for length in lengths]


def video_encoder(video: VideoConfig, **settings: Any) -> EncoderOnly[TubeletEmbedding]:
    image = ImageConfig(size=(4, 20), patch=4, **settings)
    return EncoderOnly(ModelConfig(**SHAPE), TubeletEmbedding(video, image, 14)).eval()


def encoders() -> dict[str, tuple[EncoderOnly[Any], Draw]]:
    torch.manual_seed(1)
    config, row_config = ModelConfig(**SHAPE), rows.RowConfig(**SHAPE, features=3)
    return {
        "tokens": (EncoderOnly(config, Embedding(29, config)).eval(), of_tokens),
        "rows": (EncoderOnly(row_config, rows.RowInput(row_config)).eval(), of_rows),
        "convolution": (EncoderOnly(config, Strided(3, config)).eval(), of_rows),
        "patches": (picture_encoder(), of_pictures),
        "patches of convolutions": (picture_encoder(stem="convolutional", positions="learned"), of_pictures),
        "patches without a class token": (picture_encoder(class_token=False), of_pictures),
        "tubelets": (video_encoder(VideoConfig(frames=33, tubelet=3, positions="learned")), of_videos),
        "tubelets of convolutions": (
            video_encoder(VideoConfig(frames=33, tubelet=3), stem="convolutional", class_token=False),
            of_videos,
        ),
        "frames": (EncoderOnly(config, LinearFrames(AudioConfig(mels=3), 14)).eval(), of_rows),
        "pairs of frames": (EncoderOnly(config, ConvolutionalFrames(AudioConfig(mels=3), 14)).eval(), of_rows),
    }


@pytest.mark.parametrize("kind", encoders())
@torch.no_grad()
def test_padding_changes_no_state_and_no_class(kind):
    encoder, draw = encoders()[kind]
    classifier = SequenceClassifier(ModelConfig(**SHAPE, pooling="mean"), encoder, 3).eval()
    given = draw([7, 3, 1, 11])
    padded = nn.utils.rnn.pad_sequence(given, batch_first=True, padding_value=5)
    mask = torch.arange(padded.size(1)) < torch.tensor([len(one) for one in given])[:, None]
    states, found = encoder.encode(padded, mask)
    classes = classifier(padded, mask)
    for number, one in enumerate(given):
        whole = torch.ones(1, len(one), dtype=torch.bool)
        alone, real = encoder.encode(one[None], whole)
        assert real.all()
        assert found[number].sum() == alone.size(1)
        torch.testing.assert_close(states[number][found[number]], alone[0])
        torch.testing.assert_close(classes[number], classifier(one[None], whole)[0])


def of_one_kind(kind: str) -> tuple[InputLayer, torch.Tensor, int]:
    """An input layer, one input for it, and the number of vectors that it makes of the input."""
    config = ModelConfig(**SHAPE)
    sound, video = AudioConfig(features="samples", hop=320, stem="linear"), VideoConfig(frames=6, tubelet=2)
    clip = sample_frames(torch.randn(10 * sound.rate), sound)
    kinds: dict[str, tuple[InputLayer, torch.Tensor, int]] = {
        "a text of 11 tokens": (Embedding(29, config), torch.randint(4, 29, (11,)), 11),
        "an image of 224 x 224": (
            PatchEmbedding(ImageConfig(class_token=False), 14),
            torch.randn(224, 224, 3),
            14 * 14,
        ),
        "10 seconds of sound": (frame_embedding(sound, 14), clip, 500),
        "a video of 6 frames": (
            TubeletEmbedding(video, ImageConfig(size=(28, 42), patch=14, class_token=False), 14),
            torch.randn(6, 28, 42, 3),
            3 * 2 * 3,
        ),
    }
    return kinds[kind]


@pytest.mark.parametrize(
    "kind", ["a text of 11 tokens", "an image of 224 x 224", "10 seconds of sound", "a video of 6 frames"]
)
@torch.no_grad()
def test_every_kind_of_input_becomes_a_matrix_of_n_vectors_of_size_d_for_one_and_the_same_encoder(kind):
    layer, given, count = of_one_kind(kind)
    mask = torch.ones(1, len(given), dtype=torch.bool)
    vectors, real = layer.embed(given[None], mask)
    assert vectors[0].shape == (count, 14)
    encoder = EncoderOnly(ModelConfig(**SHAPE), layer).eval()
    other = EncoderOnly(ModelConfig(**SHAPE), Embedding(29, ModelConfig(**SHAPE))).eval()
    encoder.stack.load_state_dict(other.stack.state_dict())  # the stack that reads text
    states, _ = encoder.encode(given[None], mask)
    assert states[0].shape == (count, 14)
    assert real.all()
    torch.testing.assert_close(states, other.encode_vectors(vectors, real)[0])


def test_a_model_that_counts_no_segments_needs_none():
    encoder, draw = encoders()["tokens"]
    ids = torch.stack(draw([5, 5]))
    mask = torch.ones_like(ids, dtype=torch.bool)
    assert torch.equal(encoder(ids, mask), encoder(ids, mask, torch.zeros_like(ids)))
