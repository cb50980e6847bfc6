"""Span question answering task: learns the begin and end of an answer in a text (Devlin et al. 2019, section 4.2).

B batch, S tokens.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures import TokenClassifier
from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.filters import DropReport
from heedful.data.readers.squad import read_squad
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.metrics.answers import Answers, answer_language
from heedful.predictors.answerer import Answerer
from heedful.predictors.text_predictor import Text
from heedful.tasks.parts.texts import TextBatch, TextRows
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import encode_context, readings
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class SquadQuestions(TextRows[TextBatch]):
    """Questions, each with the text that answers it and the place of the answer there."""

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        for context, questions in groupby(read_squad(corpus, recipe.data), attrgetter("context")):
            yield context
            yield from (question.question for question in questions)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each question with each window of its text, and the place of its first accepted answer in that row."""
        causal = FAMILIES[recipe.model.family].causal
        for text, questions in groupby(read_squad(corpus, recipe.data), attrgetter("context")):
            context = encode_context(tokenizer, text)
            for question in questions:
                name = f"{corpus.source}, question {question.id!r}"
                tokens = range(0)  # there may be no answer
                if question.answers:
                    answer = question.answers[0]
                    tokens = context.tokens(answer.start, answer.start + len(answer.text))
                    if not tokens:
                        raise InputError(
                            f"{name}: the tokenizer keeps nothing of the answer {answer.text!r}; take the question out"
                        )
                ids = tokenizer.encode(question.question)
                for row in readings(ids, context, recipe.data.max_length, causal=causal, name=name):
                    yield row.ids, list(row.place(tokens))


class SpanQuestionAnswering(Task[TextBatch]):
    """Span question answering task: learns the first and last token of an answer; questions may have no answer."""

    families = ("encoder", "decoder")
    command = "heedful predict"
    pair_field = "pair"  # column of the text that may hold the answer, in a table
    dataset = SquadQuestions
    metrics = ("f1", "exact_match", "loss")
    predicts = Answers

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TokenClassifier:
        return TokenClassifier(recipe.model, len(tokenizers.source), 2)

    @staticmethod
    def use(model: TokenClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Answerer:
        return Answerer(model, tokenizers.source, recipe.data)

    def loss(self, model: TokenClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        """Compute the sum of the cross-entropies of the answer's first and last token, over all possible places."""
        # Begin and end are two softmaxes over the tokens of the text; one more token stands for no answer.
        possible = possible_places(batch.ids, batch.segments, causal=model.backbone.causal)
        logits = model(batch.ids, batch.padding_mask, batch.segments).float()
        begin, end = (
            place_loss(logits[:, :, side], possible, batch.targets[:, side], self.recipe.train.label_smoothing)
            for side in (0, 1)
        )
        return (Loss(begin.sum + end.sum, begin.nll + end.nll, begin.count),)

    def outputs(self, model: TokenClassifier, run: Evaluation) -> Answers:
        """Answer the validation questions; answers in Chinese are compared by characters."""
        questions = list(read_squad(self.data.valid_corpus, self.recipe.data))
        run.progress.begin("questions", len(questions))
        answerer = self.use(model, self.recipe, self.tokenizers)
        answers = run.progress.over(answerer.predict_lines(Text(q.question, q.context) for q in questions))
        predicted = [answer.answer for answer in answers]
        accepted = [[answer.text for answer in question.answers] for question in questions]
        return Answers(predicted, accepted, answer_language(self.recipe.data.target_language))


def possible_places(ids: Int[Tensor, "B S"], segments: Int[Tensor, "B S"], *, causal: bool) -> Bool[Tensor, "B S"]:
    """Mark the tokens at which an answer may begin or end: the text's, and the token that stands for no answer."""
    second = segments == 1
    if causal:
        return second  # with its <eos>, which stands for no answer
    possible = second & (ids != EOS)
    possible[:, 0] = True
    return possible


def place_loss(
    logits: Float[Tensor, "B S"], possible: Bool[Tensor, "B S"], targets: Int[Tensor, " B"], smoothing: float
) -> Loss:
    """Compute the cross-entropy of one place in each row; label smoothing spreads over the possible places."""
    surprise = -logits.masked_fill(~possible, -torch.inf).log_softmax(-1)
    nll = surprise.gather(1, targets[:, None]).sum()
    means = surprise.masked_fill(~possible, 0.0).sum(-1) / possible.sum(-1)
    return Loss((1 - smoothing) * nll + smoothing * means.sum(), nll.detach(), len(targets))
