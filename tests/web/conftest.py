"""A real browser and a real server: the pages as people get them."""

import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

import served
from heedful.checkpoint import load_model
from heedful.inspector.page import Page
from reversal import trained_run

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 120_000  # milliseconds: a busy machine is slow, and nothing is timed by these tests
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "web":
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    """The browser of this machine; without one these tests are left out, but not where all must run."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        assert "CI" not in os.environ, "no Chromium: install the package chromium"
        pytest.skip("no Chromium on this machine: install the package chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run with its journal and checkpoints."""
    return trained_run(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def live(trained):
    """The small models of every family, served with the page as it was built."""
    models = served.models() | {"second": served.loaded_translator(seed=2), "run": load_model(trained)}
    with served.Live(models, Page.built()) as server:
        yield server


class Watched:
    """A page whose every request, message and error is written down."""

    def __init__(self, page):
        self.page = page
        self.requests, self.complaints = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.set_default_timeout(PATIENCE)

    def open(self, url, heading=True):
        self.page.goto(url)
        if heading:
            self.page.wait_for_selector("main h2")
        return self.page


@pytest.fixture
def watched(chromium):
    """A fresh page in English."""
    context = chromium.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    yield Watched(context.new_page())
    context.close()
