"""Tables of the subjects of verification: which one stands for a model, by its class and by what it reads."""

from heedful.checkpoint.load import LoadedModel
from heedful.errors import InputError
from heedful.models import (
    LanguageModel,
    MaskedLanguageModel,
    MaskedPatchModel,
    SentenceEncoder,
    SequenceClassifier,
    SourceToTarget,
    TextClassifier,
    TokenClassifier,
)
from heedful.models.dual_encoder import DualEncoder
from heedful.registry import ARCHITECTURES
from heedful.verify.media_subject import DualSubject, MediaPairSubject, MediaSubject, PatchSubject
from heedful.verify.subject import PairSubject, RowSubject, Subject, TextSubject

OF_TEXT: dict[type, type[Subject]] = {
    SourceToTarget: PairSubject,
    LanguageModel: TextSubject,
    **dict.fromkeys((MaskedLanguageModel, TextClassifier, TokenClassifier, SentenceEncoder), RowSubject),
}
OF_MEDIA: dict[type, type[MediaSubject | MediaPairSubject]] = {
    SourceToTarget: MediaPairSubject,
    SequenceClassifier: MediaSubject,
    DualEncoder: DualSubject,
    MaskedPatchModel: PatchSubject,
}


def subject_of(loaded: LoadedModel, seed: int = 0) -> Subject:
    """Make the subject of a loaded model.

    Raises:
        InputError: the model reads no text, pictures or sounds, or looks up single words only.
    """
    vocabulary = min(loaded.tokenizers.sizes)
    if loaded.recipe.data.modality != "text":
        for kind, media_subject in OF_MEDIA.items():
            if isinstance(loaded.model, kind):
                return media_subject(loaded.model, loaded.recipe, vocabulary, seed)
    for kind, subject in OF_TEXT.items():
        if isinstance(loaded.model, kind) and vocabulary:
            found = subject(loaded.model, vocabulary, seed)
            found.sides = ("right",) if ARCHITECTURES.is_own(loaded.recipe.model.architecture) else found.sides
            return found
    raise InputError(f"{loaded.path}: there is nothing to verify in a model that reads no text, pictures or sounds")
