import json
import math

from heedful.train.progress import Progress, Window


def test_progress_survives_json_to_the_last_bit():
    progress = Progress(update=7, epoch=1, batch=3, best=math.pi, best_update=5, window=Window(0.1 + 0.2, 1e-300, 11))
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


def test_a_window_gives_means_over_its_tokens():
    window = Window()
    window.add(loss=6.0, nll=4.0, count=3)
    window.add(loss=4.0, nll=1.0, count=2)
    assert window.means() == {"loss": 2.0, "perplexity": math.exp(1.0)}


def test_an_empty_window_has_no_loss():
    assert Window().means() == {"loss": 0.0, "perplexity": 1.0}
