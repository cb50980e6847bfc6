"""`heedful data`: public data sets by name, and the command that a recipe without its data names."""

import pytest
from invocation import invoke

from heedful.data.catalogue import public_sets
from heedful.errors import InputError


def test_the_list_names_every_data_set_with_its_licence():
    output = invoke("data", "--list").output
    for name, each in public_sets().items():
        assert name in output
        assert each.licence in output


def test_an_unknown_name_suggests_a_similar_one(tmp_path):
    with pytest.raises(InputError, match=r'sst: unknown data set; did you mean "sst2"\?'):
        invoke("data", "sst", "--out", tmp_path)


def test_nothing_is_downloaded_without_a_name():
    with pytest.raises(InputError, match="name one or more data sets"):
        invoke("data")


def test_a_mirror_is_a_web_address(tmp_path):
    with pytest.raises(InputError, match=r"--mirror files/: is not an address"):
        invoke("data", "sst2", "--out", tmp_path, "--mirror", "files/")


def test_an_estimated_size_is_marked_in_the_list():
    lines = invoke("data", "--list").output.splitlines()
    sizes = {line.split()[0]: line.split()[1] for line in lines if not line.startswith(" ")}
    for name, each in public_sets().items():
        assert sizes[name].startswith("~") == each.is_estimated
    assert not public_sets()["sst2"].is_estimated
    assert public_sets()["wmt14-en-fr"].is_estimated
