"""Names in recipes and commands, and the parts of the code that they stand for, which are imported on first use.

To add a part, add a line to a table below. An installed package adds parts through entry points, in the group that is
the last argument of a table; see docs/how-to/own-package.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from heedful.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Parts of one kind by name. Listing the names imports nothing; looking one up imports its module.

    Args:
        kind: The kind, for messages, such as "task".
        places: Where heedful's own parts are, by name, each as "module:attribute".
        group: The group of entry points for parts from other packages; None if packages cannot add parts.
    """

    def __init__(self, kind: str, places: Mapping[str, str], group: str | None = None) -> None:
        self.kind = kind
        self.places = places
        self.group = group
        self._imported: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._imported:
            self._imported[name] = self._import(name)
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.places or name in self.installed()

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self.places, *self.installed()])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def is_custom(self, name: str) -> bool:
        """Return True for a part that does not come with heedful: from another package, or given as "module:Class"."""
        return name not in self.places

    def installed(self) -> Mapping[str, list[EntryPoint]]:
        """Return the entry points for parts from other packages, by name."""
        return entry_points_of(self.group) if self.group else {}

    def _import(self, name: str) -> T:
        entries = self.installed().get(name, [])
        owners = ["heedful"] if name in self.places else []
        owners += [entry.dist.name if entry.dist else entry.value for entry in entries]
        if len(owners) > 1:
            raise InputError(
                f'the {self.kind} "{name}" is provided by several packages ({", ".join(owners)}); uninstall all '
                "but one of them, or change the name in one"
            )
        if not entries:
            return import_attribute(self.places[name])
        try:
            return entries[0].load()
        except Exception as error:
            raise InputError(
                f'the {self.kind} "{name}" of the package {owners[0]} cannot be imported from {entries[0].value}: '
                f"{type(error).__name__}: {error}"
            ) from error


@cache
def entry_points_of(group: str) -> dict[str, list[EntryPoint]]:
    entries: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        if entry not in entries.setdefault(entry.name, []):  # a package may be on the path twice
            entries[entry.name].append(entry)
    return entries


def import_attribute(path: str) -> Any:
    """Import an object by its path, "module:attribute"."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def public_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Create the `__getattr__` of a package that imports each public name when it is first used.

    Args:
        package: The name of the package.
        modules: The public names by the module that defines them.
    """
    paths = {name: f"{module}:{name}" for module, names in modules.items() for name in names}

    def import_name(name: str) -> Any:
        if name not in paths:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_attribute(paths[name])

    return import_name


ARCHITECTURES: Registry[type] = Registry(
    "architecture",
    {  # the settings class of each architecture, whose fields are the keys in [model]
        "transformer": "heedful.config.schema:ModelConfig",
        "recurrent": "heedful.architectures.recurrent.settings:RecurrentConfig",
        "convolutional": "heedful.architectures.convolutional.settings:ConvolutionalConfig",
        "bytenet": "heedful.architectures.bytenet.settings:ByteNetConfig",
        "text_cnn": "heedful.architectures.text_cnn.settings:TextCNNConfig",
        "bag_of_words": "heedful.architectures.bag_of_words.settings:BagOfWordsConfig",
        "word2vec": "heedful.architectures.word2vec.settings:Word2VecConfig",
        "dual_encoder": "heedful.architectures.dual_encoder.settings:DualEncoderConfig",
    },
    "heedful.architectures",
)

MODELS = {  # the models of each architecture, or their backbones, by family
    "transformer": {
        "encoder_decoder": "heedful.architectures.transformer.model:EncoderDecoder",
        "encoder": "heedful.architectures.transformer.model:EncoderOnly",
        "decoder": "heedful.architectures.transformer.model:DecoderOnly",
    },
    "recurrent": {
        "encoder_decoder": "heedful.architectures.recurrent.model:RecurrentEncoderDecoder",
        "encoder": "heedful.architectures.recurrent.model:RecurrentEncoder",
        "decoder": "heedful.architectures.recurrent.model:RecurrentLanguageBackbone",
    },
    "convolutional": {
        "encoder_decoder": "heedful.architectures.convolutional.model:ConvolutionalEncoderDecoder",
        "encoder": "heedful.architectures.convolutional.model:ConvolutionalEncoder",
        "decoder": "heedful.architectures.convolutional.model:ConvolutionalLanguageBackbone",
    },
    "bytenet": {
        "encoder_decoder": "heedful.architectures.bytenet.model:ByteNetEncoderDecoder",
        "encoder": "heedful.architectures.bytenet.model:ByteNetEncoder",
        "decoder": "heedful.architectures.bytenet.model:ByteNetLanguageBackbone",
    },
    "text_cnn": {"encoder": "heedful.architectures.text_cnn.model:TextCNN"},
    "bag_of_words": {"encoder": "heedful.architectures.bag_of_words.model:BagOfWords"},
    "word2vec": {"word_vectors": "heedful.architectures.word2vec.model:Word2Vec"},
    "dual_encoder": {"encoder": "heedful.architectures.dual_encoder.model:DualEncoder"},
}

TASKS: Registry[type] = Registry(
    "task",
    {
        "audio_classification": "heedful.tasks.media_classification:AudioClassification",
        "captioning": "heedful.tasks.media_to_text:Captioning",
        "classification": "heedful.tasks.classification:Classification",
        "dialogue": "heedful.tasks.text_to_text:Dialogue",
        "image_classification": "heedful.tasks.media_classification:ImageClassification",
        "image_text_retrieval": "heedful.tasks.image_text_retrieval:ImageTextRetrieval",
        "language_model": "heedful.tasks.language_model:CausalLanguageModelling",
        "masked_lm": "heedful.tasks.masked_lm:MaskedLanguageModelling",
        "masked_patches": "heedful.tasks.masked_patches:MaskedPatches",
        "ranking": "heedful.tasks.ranking:Ranking",
        "regression": "heedful.tasks.regression:Regression",
        "span_qa": "heedful.tasks.span_qa:SpanQuestionAnswering",
        "speech_recognition": "heedful.tasks.media_to_text:SpeechRecognition",
        "summarisation": "heedful.tasks.text_to_text:Summarisation",
        "tagging": "heedful.tasks.tagging:Tagging",
        "text_to_text": "heedful.tasks.text_to_text:TextToText",
        "translation": "heedful.tasks.text_to_text:Translation",
        "video_classification": "heedful.tasks.media_classification:VideoClassification",
        "word_vectors": "heedful.tasks.word_vectors:WordVectorTraining",
    },
    "heedful.tasks",
)

METRICS: Registry[Any] = Registry(
    "metric",
    {  # KIND.NAME, with the kind of outputs that the metric is computed from
        "texts.bleu": "heedful.metrics.translation:BLEU_METRIC",
        "texts.chrf": "heedful.metrics.translation:CHRF_METRIC",
        "texts.ter": "heedful.metrics.translation:TER_METRIC",
        "texts.exact_match": "heedful.metrics.texts:EXACT_MATCH",
        "texts.rouge1": "heedful.metrics.texts:ROUGE_1",
        "texts.rouge2": "heedful.metrics.texts:ROUGE_2",
        "texts.rougeL": "heedful.metrics.texts:ROUGE_L",
        "texts.sentence_f1": "heedful.metrics.texts:SENTENCE_F1",
        "texts.distinct_1": "heedful.metrics.texts:DISTINCT_1",
        "texts.distinct_2": "heedful.metrics.texts:DISTINCT_2",
        "texts.wer": "heedful.metrics.texts:WER",
        "texts.cer": "heedful.metrics.texts:CER",
        "texts.bracket_f1": "heedful.metrics.trees:BRACKET_F1",
        "texts.passes_tests": "heedful.metrics.programs:PASSES_TESTS",
        "texts.invalid_trees": "heedful.metrics.trees:INVALID_TREES",
        "classes.accuracy": "heedful.metrics.classes:ACCURACY",
        "classes.macro_f1": "heedful.metrics.classes:MACRO_F1",
        "classes.f1": "heedful.metrics.classes:F1",
        "classes.matthews": "heedful.metrics.classes:MATTHEWS",
        "tags.f1": "heedful.metrics.spans:F1",
        "tags.precision": "heedful.metrics.spans:PRECISION",
        "tags.recall": "heedful.metrics.spans:RECALL",
        "tags.accuracy": "heedful.metrics.spans:ACCURACY",
        "answers.f1": "heedful.metrics.answers:F1",
        "answers.exact_match": "heedful.metrics.answers:EXACT_MATCH",
        "numbers.spearman": "heedful.metrics.correlation:SPEARMAN",
        "numbers.pearson": "heedful.metrics.correlation:PEARSON",
        "rankings.mrr": "heedful.metrics.retrieval:MRR",
        "rankings.recall@1": "heedful.metrics.retrieval:RECALL_1",
        "rankings.recall@10": "heedful.metrics.retrieval:RECALL_10",
        "rankings.ndcg@10": "heedful.metrics.retrieval:NDCG_10",
        "matches.mrr": "heedful.metrics.retrieval:MATCH_MRR",
        "matches.text_mrr": "heedful.metrics.retrieval:TEXT_MRR",
        "matches.text_recall@1": "heedful.metrics.retrieval:TEXT_RECALL_1",
        "matches.text_recall@5": "heedful.metrics.retrieval:TEXT_RECALL_5",
        "matches.text_recall@10": "heedful.metrics.retrieval:TEXT_RECALL_10",
        "matches.image_mrr": "heedful.metrics.retrieval:IMAGE_MRR",
        "matches.image_recall@1": "heedful.metrics.retrieval:IMAGE_RECALL_1",
        "matches.image_recall@5": "heedful.metrics.retrieval:IMAGE_RECALL_5",
        "matches.image_recall@10": "heedful.metrics.retrieval:IMAGE_RECALL_10",
    },
    "heedful.metrics",
)

POSITIONS: Registry[Any] = Registry(
    "position scheme",
    {
        "sinusoidal": "heedful.nn.positions:Sinusoidal",
        "learned": "heedful.nn.positions:Learned",
        "rotary": "heedful.nn.positions:Rotary",
        "alibi": "heedful.nn.positions:Alibi",
        "relative": "heedful.nn.positions:Relative",
        "none": "heedful.nn.positions:Positions",
    },
    "heedful.positions",
)

TOKENIZERS: Registry[Any] = Registry(
    "kind of tokenizer",
    {  # functions that train the model of a tokenizer on the words of a text
        "word": "heedful.text.training:word_model",
        "character": "heedful.text.training:character_model",
        "byte": "heedful.text.training:byte_model",
        "bpe": "heedful.text.training:bpe_model",
        "unigram": "heedful.text.training:unigram_model",
        "wordpiece": "heedful.text.training:wordpiece_model",
    },
    "heedful.tokenizers",
)

FORMATS: Registry[Any] = Registry(
    "model format",
    {  # formats of other toolkits that `heedful convert` reads
        "bert": "heedful.convert.bert:FORMAT",
        "clip": "heedful.convert.clip:FORMAT",
        "gpt2": "heedful.convert.gpt2:FORMAT",
        "llama": "heedful.convert.llama:FORMAT",
        "marian": "heedful.convert.marian:FORMAT",
        "opennmt": "heedful.convert.opennmt:FORMAT",
        "faster-whisper": "heedful.convert.faster_whisper:FORMAT",
        "vit": "heedful.convert.vit:FORMAT",
        "whisper": "heedful.convert.whisper:FORMAT",
    },
)

EXPORTERS: Registry[Any] = Registry(
    "export format",
    {  # formats that `heedful export` and `heedful convert --to` write
        "safetensors": "heedful.convert.safetensors_export:EXPORTER",
        "huggingface": "heedful.convert.huggingface_export:EXPORTER",
        "ctranslate2": "heedful.convert.ctranslate2_export:EXPORTER",
        "argos": "heedful.convert.argos_export:EXPORTER",
        "gguf": "heedful.convert.gguf_export:EXPORTER",
        "onnx": "heedful.convert.onnx.exporter:EXPORTER",
        "bert": "heedful.convert.bert:EXPORTER",
        "clip": "heedful.convert.clip:EXPORTER",
        "gpt2": "heedful.convert.gpt2:EXPORTER",
        "llama": "heedful.convert.llama:EXPORTER",
        "marian": "heedful.convert.marian:EXPORTER",
        "peft": "heedful.convert.peft:EXPORTER",
        "sentencepiece": "heedful.convert.sentencepiece_export:EXPORTER",
        "vit": "heedful.convert.vit:EXPORTER",
        "whisper": "heedful.convert.whisper:EXPORTER",
    },
)

ENGINE_PREDICTORS: Registry[Any] = Registry(
    "task of CTranslate2",
    {  # by task, the predictor whose model runs on CTranslate2
        **dict.fromkeys(
            ("translation", "summarisation", "dialogue", "text_to_text"),
            "heedful.predictors.ctranslate2_translator:CTranslate2Translator",
        ),
        "language_model": "heedful.predictors.ctranslate2_generator:CTranslate2Generator",
        "ranking": "heedful.predictors.ctranslate2_retriever:CTranslate2Retriever",
        "speech_recognition": "heedful.predictors.ctranslate2_transcriber:CTranslate2Transcriber",
    },
)

DOCUMENTS: Registry[Any] = Registry(
    "document format",
    {  # by the ending of file names, the function that finds the texts in a document
        "txt": "heedful.documents.plain_text:read",
        **dict.fromkeys(("md", "markdown"), "heedful.documents.markdown:read"),
        **dict.fromkeys(("html", "htm", "xhtml"), "heedful.documents.html:read"),
        **dict.fromkeys(("docx", "pptx"), "heedful.documents.office:read"),
        **dict.fromkeys(("odt", "odp"), "heedful.documents.open_document:read"),
        "epub": "heedful.documents.epub:read",
        **dict.fromkeys(("srt", "vtt"), "heedful.documents.subtitles:read"),
        "json": "heedful.documents.json_strings:read",
        **dict.fromkeys(("yaml", "yml"), "heedful.documents.yaml_strings:read"),
        **dict.fromkeys(("po", "pot"), "heedful.documents.gettext_catalog:read"),
        **dict.fromkeys(("xliff", "xlf"), "heedful.documents.xliff:read"),
        **dict.fromkeys(("xml", "resx"), "heedful.documents.resource_xml:read"),
    },
    "heedful.documents",
)
