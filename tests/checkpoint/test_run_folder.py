import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faulty_storage import FaultyStorage
from same import same

from heedful.checkpoint import Best, Checkpoint, Checkpoints, DamagedError
from heedful.errors import InputError, RunError
from heedful.storage.complete_folder import seal, unseal

Maker = Callable[[int], Checkpoint]


def opened(run: Path, keep_last: int = 2) -> Checkpoints:
    return Checkpoints(run, keep_last, FaultyStorage())


def hidden(run: Path) -> list[str]:
    return [path.name for path in (run / "checkpoints").iterdir() if path.name.startswith(".")]


def damage(run: Path, step: int, name: str = "model.safetensors") -> None:
    path = opened(run).path(step) / name
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


class TestSaving:
    def test_everything_comes_back_bit_for_bit(self, run: Path, checkpoint_of: Maker) -> None:
        opened(run).save(checkpoint_of(7))
        latest = opened(run).load_latest()
        assert same(latest.checkpoint, checkpoint_of(7))
        assert not same(latest.checkpoint, checkpoint_of(5))
        assert latest.rejected == ()

    def test_a_new_run_has_nothing_to_load(self, tmp_path: Path) -> None:
        checkpoints = opened(tmp_path / "run")
        assert checkpoints.load_latest().checkpoint is None
        assert checkpoints.steps() == []
        assert checkpoints.best is None

    def test_the_last_and_the_best_are_kept(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = opened(run)
        for step in (7, 11, 100_000_007):
            checkpoints.save(checkpoint_of(step))
        assert checkpoints.steps() == [2, 11, 100_000_007]
        checkpoints.mark_best(11, "loss", 0.5)
        checkpoints.save(checkpoint_of(100_000_019))
        assert checkpoints.steps() == [11, 100_000_007, 100_000_019]

    def test_two_are_kept_if_one_is_asked_for(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = opened(run, keep_last=1)
        checkpoints.save(checkpoint_of(7))
        assert checkpoints.steps() == [2, 5, 7]

    def test_steps_between_the_regular_ones_take_no_place_of_theirs(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        checkpoints = Checkpoints(tmp_path, 2, FaultyStorage(), every=10)
        kept = []
        for step in (10, 13, 20, 27, 29, 30, 31):
            checkpoints.save(checkpoint_of(step))
            kept.append(checkpoints.steps())
        assert kept[3:] == [[10, 20, 27], [10, 20, 27, 29], [20, 29, 30], [20, 30, 31]]

    def test_two_complete_ones_are_kept_whatever_lies_beside_them(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = opened(run)
        (checkpoints.path(5) / "model.safetensors").write_bytes(b"cut off")
        checkpoints.save(checkpoint_of(7))
        assert checkpoints.steps() == [2, 3, 5, 7]

    def test_a_saved_step_is_never_written_again(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = opened(run)
        checkpoints.save(replace(checkpoint_of(7), step=5))
        assert same(checkpoints.load_latest().checkpoint, checkpoint_of(5))

    def test_what_a_killed_writer_left_is_swept(self, run: Path, checkpoint_of: Maker) -> None:
        shutil.copytree(run / "checkpoints/step-00000003", run / "checkpoints/.tmp-step-00000003")
        (run / "checkpoints/.old-step-00000001/tokenizer").mkdir(parents=True)
        opened(run).save(checkpoint_of(7))
        assert hidden(run) == []

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_weights_that_are_not_finite_are_never_saved(self, run: Path, checkpoint_of: Maker, value: float) -> None:
        checkpoint = checkpoint_of(7)
        *_, last = checkpoint.weights
        weights = {**checkpoint.weights, last: checkpoint.weights[last].clone()}
        weights[last].view(-1)[-1] = value
        with pytest.raises(RunError, match=r"step 7 is not saved.*not finite"):
            opened(run).save(replace(checkpoint, weights=weights))
        assert opened(run).steps() == [2, 3, 5]


class TestBest:
    def test_it_is_remembered(self, run: Path) -> None:
        assert opened(run).best == Best(2, "loss", 0.7)
        opened(run).mark_best(5, "bleu", 27.3)
        assert opened(run).best == Best(5, "bleu", 27.3)

    def test_a_step_that_is_not_saved_cannot_be_the_best(self, run: Path) -> None:
        with pytest.raises(RunError, match="step 7 is not saved"):
            opened(run).mark_best(7, "loss", 0.1)

    def test_it_is_none_where_its_checkpoint_is_gone(self, run: Path) -> None:
        shutil.rmtree(run / "checkpoints/step-00000002")
        assert opened(run).best is None

    def test_every_changed_byte_is_noticed(self, run: Path) -> None:
        path = run / "checkpoints/best.json"
        data = path.read_bytes()
        for place in range(len(data)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(InputError, match=r"best\.json.*remove it"):
                opened(run)


class TestDamage:
    def test_the_newest_intact_one_is_loaded_and_the_damaged_are_put_aside(
        self, run: Path, checkpoint_of: Maker
    ) -> None:
        damage(run, 5)
        damage(run, 3, "state.json")
        latest = opened(run).load_latest()
        assert same(latest.checkpoint, checkpoint_of(2))
        assert [rejected.path.name for rejected in latest.rejected] == ["step-00000005.bad", "step-00000003.bad"]
        assert all(rejected.path.is_dir() for rejected in latest.rejected)
        assert [rejected.reason.split()[0] for rejected in latest.rejected] == ["model.safetensors", "state.json"]
        assert opened(run).steps() == [2]

    def test_a_step_can_be_damaged_twice(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = opened(run)
        for _ in range(2):
            damage(run, 5)
            assert same(checkpoints.load_latest().checkpoint, checkpoint_of(3))
            checkpoints.save(checkpoint_of(5))
        assert same(checkpoints.load_latest().checkpoint, checkpoint_of(5))

    def test_strictness_makes_it_an_error(self, run: Path) -> None:
        damage(run, 5)
        with pytest.raises(DamagedError, match=r"step-00000005/model\.safetensors does not match its checksum"):
            opened(run).load_latest(strict=True)
        assert opened(run).steps() == [2, 3, 5]

    def test_a_run_without_an_intact_one_does_not_look_new(self, run: Path) -> None:
        for step in (2, 3, 5):
            damage(run, step)
        with pytest.raises(DamagedError, match=r"no intact checkpoint \(step 5: .*step 3: .*step 2: "):
            opened(run).load_latest()
        assert opened(run).steps() == [2, 3, 5]

    def test_a_checkpoint_under_the_name_of_another_is_damaged(self, run: Path, checkpoint_of: Maker) -> None:
        shutil.copytree(run / "checkpoints/step-00000002", run / "checkpoints/step-00000007")
        latest = opened(run).load_latest()
        assert same(latest.checkpoint, checkpoint_of(5))
        assert latest.rejected[0].reason == "step-00000007 contains a different step"

    def test_a_format_of_the_future_is_an_error_and_not_damage(self, run: Path) -> None:
        path = run / "checkpoints/step-00000005/manifest.json"
        path.write_bytes(seal({**unseal(path.read_bytes()), "format": 13}))
        with pytest.raises(InputError, match="format 13") as caught:
            opened(run).load_latest()
        assert not isinstance(caught.value, DamagedError)
