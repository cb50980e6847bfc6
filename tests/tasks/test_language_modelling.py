import math

import numpy as np
import pytest
import torch

from heedful.tasks.language_model import CausalLanguageModelling, collate, loss
from heedful.tasks.task import Evaluation
from toy_tasks import recipe, write_text

CPU = torch.device("cpu")
IDS = np.array([[3, 5, 6, 3, 7, 8], [9, 3, 5, 5, 3, 0]])
DOCUMENTS = np.array([[0, 0, 0, 1, 1, 1], [4, 5, 5, 5, 6, 9]])


@pytest.fixture
def task(tmp_path):
    return prepared(tmp_path)


def prepared(folder, **tables) -> CausalLanguageModelling:
    settings = recipe("language_model", write_text(folder / "text"), **tables)
    return CausalLanguageModelling.prepare(settings, folder / "data", lambda _: None)


def built(task: CausalLanguageModelling):
    torch.manual_seed(0)
    return task.build(task.recipe, task.tokenizers).eval()


def plain_loss(model, rows, smoothing: float) -> tuple[float, float]:
    """The smoothed loss and the negative log-likelihood of each row after its first token, in float64 loops."""
    model = model.double()
    total = nll = 0.0
    for row in rows:
        for end in range(1, len(row)):
            read = torch.tensor([row[:end]])
            logits = model(read, torch.ones_like(read, dtype=torch.bool))[0, -1].tolist()
            normalizer = math.log(sum(math.exp(logit) for logit in logits))
            losses = [normalizer - logit for logit in logits]
            nll += losses[row[end]]
            total += (1 - smoothing) * losses[row[end]] + smoothing * sum(losses) / len(losses)
    model.float()
    return total, nll


@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_each_token_given_those_before_it(task, cross, smoothing):
    model = built(task)
    with torch.no_grad():
        got = loss(model, collate(IDS, DOCUMENTS, CPU, cross=cross), smoothing)
        whole = [[3, 5, 6, 3, 7, 8], [9, 3, 5, 5, 3]]
        # A document's last token is predicted within it; the <eos> before the next one, which announces that, is read.
        alone = [[3, 5, 6, 3], [3, 7, 8], [9, 3], [3, 5, 5, 3]]
        want = plain_loss(model, whole if cross else alone, smoothing)
    assert (got.sum.item(), got.nll.item()) == pytest.approx(want, rel=1e-5)
    assert got.count == 9


def test_every_token_of_the_validation_text_is_predicted_once_and_in_order(task):
    predicted = []
    for starts in task.data.valid_plan():
        batch = task.data.valid_batch(starts, CPU)
        predicted += batch.targets[batch.targets != 0].tolist()
        assert batch.counts == (batch.tokens,) == (int((batch.targets != 0).sum()),)
    assert predicted == task.data.examples.valid.ids.tolist()


def test_perplexities_are_those_of_a_token_and_of_a_byte(task):
    model = built(task)
    with torch.no_grad():
        scores = task.evaluate(model).scores
        rows = np.array([3, *task.data.examples.valid.ids])
        windows = [rows[i : i + 18].tolist() for i in range(0, len(rows) - 1, 17)]
        nll = plain_loss(model, windows, 0.0)[1]
    tokens, size = len(task.data.examples.valid), len(text(task))
    assert scores["loss"] == pytest.approx(nll / tokens, rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(nll / tokens), rel=1e-4)
    assert scores["byte_perplexity"] == pytest.approx(math.exp(nll / size), rel=1e-4)


def text(task: CausalLanguageModelling) -> bytes:
    """The bytes of the validation documents, which are lines."""
    with open(f"{task.recipe.data.root}/valid.txt", "rb") as file:
        return file.read().replace(b"\n", b"")


def test_a_model_that_reads_one_document_at_a_time_scores_otherwise(tmp_path):
    apart, across = (prepared(tmp_path / str(x), data={"cross_documents": x}) for x in (False, True))
    with torch.no_grad():
        scores = [(task.evaluate(built(task)).scores)["loss"] for task in (apart, across)]
    assert scores[0] != pytest.approx(scores[1], rel=1e-4)


def test_without_validation_text_there_is_no_score(tmp_path):
    task = prepared(tmp_path, data={"valid": None})
    assert task.evaluate(built(task)) is None


@pytest.mark.parametrize(("byte_fallback", "told"), [(True, 0), (False, 1)])
def test_unknown_tokens_that_flatter_the_perplexity_of_a_byte_are_told(tmp_path, byte_fallback, told):
    words = {"kind": "word", "vocab_size": 7 + 256 * byte_fallback, "byte_fallback": byte_fallback}
    task, said = prepared(tmp_path, tokenizer=words), []
    task.evaluate(built(task), Evaluation(warn=said.append))
    assert len(said) == told
    assert all("of the tokens are <unk>" in line for line in said)
