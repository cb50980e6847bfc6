import json
import math

from heedful.tasks.task import Mean
from heedful.training.trainer_state import LogWindow, TrainerState


def test_progress_survives_json_to_the_last_bit():
    progress = TrainerState(
        update=7, epoch=1, batch=3, best=math.pi, best_update=5, window=LogWindow([0.1 + 0.2], [1e-300], [11])
    )
    assert TrainerState.from_json(json.loads(json.dumps(progress.to_json()))) == progress


def test_a_window_gives_the_mean_of_each_term_over_its_own_count():
    window = LogWindow()
    window.add([6.0, 1.0], [4.0, 1.0], [3, 2])
    window.add([4.0, 3.0], [1.0, 4.0], [2, 0])
    assert window.means() == [Mean(2.0, 1.0), Mean(2.0, 2.5)]


def test_an_empty_window_has_no_loss():
    assert LogWindow().means() == []
