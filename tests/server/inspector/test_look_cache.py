"""What was used last is kept, as much as fits, and all that is kept is counted."""

import gc
import tracemalloc

import numpy as np

from heedful.inspector.look import Question, look
from heedful.inspector.overview import overview
from heedful.server.inspector.inspection_handlers import CachedInspection, InspectionCache, inspection_id, size
from subjects import translator

ONE, TWO, THREE = (Question(text=text) for text in ("dog", "station", "the old dog"))


def test_the_same_question_to_the_same_model_has_the_same_name():
    assert inspection_id("s", "a", ONE) == inspection_id("s", "a", Question(text="dog"))
    others = [
        inspection_id("s", "b", ONE),
        inspection_id("s", "a", TWO),
        inspection_id("s", "a", Question(text="dog", beam=2)),
    ]
    assert len({inspection_id("s", "a", ONE), inspection_id("of today", "a", ONE), *others}) == 5


def kept(subject, question):
    seen = look(subject, question)
    return CachedInspection.of("m", seen, overview(seen))


def test_what_was_not_used_for_longest_goes_first():
    subject = translator()
    one, two, three = (kept(subject, question) for question in (ONE, TWO, THREE))
    looks = InspectionCache(limit=size(one) + size(three))
    looks.add("1", one)
    looks.add("2", two)
    assert looks.bytes == size(one) + size(two)
    assert looks.get("1") is one
    looks.add("3", three)
    assert looks.get("2") is None
    assert looks.get("1") is one
    assert looks.get("3") is three
    assert looks.bytes == size(one) + size(three)


def test_the_newest_stays_even_if_it_is_too_large():
    looks = InspectionCache(limit=1)
    looks.add("1", kept(translator(), ONE))
    assert looks.get("1") is not None
    looks.add("2", kept(translator(), TWO))
    assert looks.get("1") is None


def copied(made):
    """The same, with tensors that numpy has allocated."""
    trace = made.inspection.trace
    trace.tensors.update({name: np.array(values) for name, values in trace.tensors.items()})
    return made


def test_everything_that_a_look_holds_is_counted():
    """As much as Python says that it takes; of tensors it knows only where numpy has allocated them."""
    subject, looks = translator(), InspectionCache()
    look(subject, ONE)  # what is made once
    gc.collect()
    tracemalloc.start()
    for number in range(2):
        looks.add(str(number), copied(kept(subject, Question(text=f"the old dog {number}", beam=5))))
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.8 * looks.bytes < taken < 1.3 * looks.bytes
