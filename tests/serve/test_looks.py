"""What was used last is kept, as much as fits."""

from heedful.inspect_.look import Question, look
from heedful.serve.looks import Kept, Looks, key
from subjects import translator

ONE, TWO, THREE = (Question(text=text) for text in ("dog", "station", "the old dog"))


def test_the_same_question_to_the_same_model_has_the_same_name():
    assert key("a", ONE) == key("a", Question(text="dog"))
    assert len({key("a", ONE), key("b", ONE), key("a", TWO), key("a", Question(text="dog", beam=2))}) == 4


def test_what_was_not_used_for_longest_goes_first():
    subject = translator()
    seen = {question: look(subject, question) for question in (ONE, TWO, THREE)}
    sizes = {q: sum(x.nbytes for x in found.trace.tensors.values()) for q, found in seen.items()}
    looks = Looks(most=sizes[ONE] + sizes[THREE])
    looks.add("1", Kept("m", seen[ONE], {}))
    looks.add("2", Kept("m", seen[TWO], {}))
    assert looks.bytes == sizes[ONE] + sizes[TWO]
    assert looks.get("1") == Kept("m", seen[ONE], {})
    looks.add("3", Kept("m", seen[THREE], {}))
    assert looks.get("2") is None
    assert looks.get("1") is not None
    assert looks.get("3") is not None


def test_the_newest_stays_even_if_it_is_too_large():
    looks = Looks(most=1)
    looks.add("1", Kept("m", look(translator(), ONE), {}))
    assert looks.get("1") is not None
    looks.add("2", Kept("m", look(translator(), TWO), {}))
    assert looks.get("1") is None
