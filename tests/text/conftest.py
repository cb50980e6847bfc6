import pytest

from every_tokenizer import all_tokenizers
from heedful.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    return all_tokenizers(tmp_path_factory.mktemp("foreign"))
