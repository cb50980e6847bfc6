"""Conversion of models between heedful and the formats of Hugging Face and CTranslate2."""

from heedful.config.dual_encoder import DualEncoderConfig
from heedful.convert import bert, clip, faster_whisper, gpt2, marian, opennmt, vit, whisper
from heedful.convert.model import Format, Model, renumbered

__all__ = ["FORMATS", "Format", "Model"]

FORMATS = {
    "bert": Format(reader=bert.read, tasks=bert.SETTINGS.tasks, writer=bert.write, changes=renumbered),
    "clip": Format(
        reader=clip.read,
        tasks=clip.SETTINGS.tasks,
        writer=clip.write,
        architecture=DualEncoderConfig.architecture,
        changes=renumbered,
    ),
    "gpt2": Format(reader=gpt2.read, tasks=gpt2.SETTINGS.tasks, writer=gpt2.write, changes=gpt2.changes),
    "marian": Format(reader=marian.read, tasks=marian.SETTINGS.tasks, writer=marian.write, changes=renumbered),
    "opennmt": Format(reader=opennmt.read, tasks=opennmt.TASKS),
    "faster-whisper": Format(reader=faster_whisper.read, tasks=faster_whisper.TASKS),
    "vit": Format(reader=vit.read, tasks=vit.SETTINGS.tasks, writer=vit.write),
    "whisper": Format(reader=whisper.read, tasks=whisper.TASKS, writer=whisper.write),
}
