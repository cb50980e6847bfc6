"""Span question answering task: learns the beginning and end of an answer in a text (Devlin et al. 2019, section 4.2).

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
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.squad import read_squad
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.metrics.answers import Answers, answer_language
from heedful.predictors.answerer import Answerer
from heedful.predictors.text_predictor import Text
from heedful.tasks.parts.texts import TextBatch, TextRows
from heedful.tasks.readers.texts import QuestionReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import encode_context, question_windows
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class SquadQuestions(TextRows[TextBatch]):
    """Questions, each with a text and the position of the answer in it, if there is one."""

    reader = QuestionReader

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each question with each window of its text; targets are the ends of its first answer in the window."""
        causal = FAMILIES[recipe.model.family].causal
        # Questions about the same text follow each other, so the text is encoded only once.
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
                            f"{name}: the tokenizer drops the whole answer {answer.text!r}; remove the question"
                        )
                ids = tokenizer.encode(question.question)
                for row in question_windows(ids, context, recipe.data.max_length, causal=causal, name=name):
                    # In a window without the answer, both targets are the position that stands for no answer.
                    yield row.ids, list(row.place(tokens))


class SpanQuestionAnswering(Task[TextBatch]):
    """Span question answering task: learns the first and last token of an answer; questions may have no answer."""

    spec = SPECS["span_qa"]
    dataset = SquadQuestions

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TokenClassifier:
        return TokenClassifier(recipe.model, len(tokenizers.source), 2)

    @staticmethod
    def use(model: TokenClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Answerer:
        return Answerer(model, tokenizers.source, recipe.data)

    def loss(self, model: TokenClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        """Compute the sum of the cross-entropies of the answer's first and last token, over all candidate positions."""
        # (B, S) True at the tokens where an answer may begin or end: those of the text, and the one for no answer,
        # which is the <eos> of the text in a GPT and the first token of the row in a BERT.
        possible = batch.segments == 1
        if not model.backbone.causal:
            possible &= batch.ids != EOS
            possible[:, 0] = True
        # (B, S, 2): one softmax over the tokens for the beginning, and one for the end.
        logits = model(batch.ids, batch.padding_mask, batch.segments).float()
        begin, end = (
            position_loss(logits[:, :, side], possible, batch.targets[:, side], self.recipe.train.label_smoothing)
            for side in (0, 1)
        )
        return (Loss(begin.sum + end.sum, begin.nll + end.nll, begin.count),)

    def outputs(self, model: TokenClassifier, run: Evaluation) -> Answers:
        """Answer the questions of the validation or test set."""
        questions = list(read_squad(self.data.valid_corpus, self.recipe.data))
        run.progress.begin("questions", len(questions))
        answerer = self.use(model, self.recipe, self.tokenizers)
        answers = run.progress.over(answerer.predict_lines(Text(q.question, q.context) for q in questions))
        predicted = [answer.answer for answer in answers]
        accepted = [[answer.text for answer in question.answers] for question in questions]
        return Answers(predicted, accepted, answer_language(self.recipe.data.target_language))


def position_loss(
    logits: Float[Tensor, "B S"], possible: Bool[Tensor, "B S"], targets: Int[Tensor, " B"], smoothing: float
) -> Loss:
    """Compute the cross-entropy of one position per row; label smoothing is spread over the possible positions."""
    surprise = -logits.masked_fill(~possible, -torch.inf).log_softmax(-1)  # (B, S)
    nll = surprise.gather(1, targets[:, None]).sum()
    # Unmasked, the infinite surprise of impossible positions would make the loss infinite, or NaN without smoothing.
    means = surprise.masked_fill(~possible, 0.0).sum(-1) / possible.sum(-1)
    return Loss((1 - smoothing) * nll + smoothing * means.sum(), nll.detach(), len(targets))
