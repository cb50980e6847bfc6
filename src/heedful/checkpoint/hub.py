"""Download and upload of models on the Hugging Face Hub, whose names are hf:OWNER/NAME or hf:OWNER/NAME@REVISION.

huggingface_hub transfers the files, so its login or HF_TOKEN, its cache, HF_HUB_OFFLINE and HF_ENDPOINT apply. It is
imported only when such a name is used. This module does not import torch.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from heedful.errors import HeedfulError, InputError, RunError
from heedful.storage.complete_folder import CARD, ENGINES, MANIFEST, DamagedError, read_manifest
from heedful.wording import did_you_mean

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

HUB = "hf:"
CONFIG = "config.json"  # which every transformers model has
DOWNLOADED_FILES = re.compile(r".+\.(safetensors|json|npy)")  # the files in a manifest that are downloaded
FOREIGN_FILES = re.compile(
    r"(\w+/)?config\.json|[\w.-]+\.(json|txt)|(source|target)\.spm|model(-\d+-of-\d+)?\.safetensors"
)
LOGIN = "log in with `hf auth login`, or set HF_TOKEN"


def is_hub_name(name: str | Path) -> bool:
    return Path(name).as_posix().startswith(HUB)


def split_name(name: str | Path) -> tuple[str, str | None]:
    """Split a name into the repository and the revision, which may be None."""
    repository, _, revision = Path(name).as_posix().removeprefix(HUB).partition("@")
    return repository, revision or None


def name_of_download(folder: Path) -> str | None:
    """Return the name of the model in a folder of huggingface_hub's cache; None for any other folder."""
    kind, *names = folder.parent.parent.name.split("--")
    return HUB + "/".join(names) if (kind, folder.parent.name) == ("models", "snapshots") and names else None


def pinned(name: str) -> str:
    """Pin the name of a model on the Hub to the commit that it refers to now; return any other name unchanged."""
    if not is_hub_name(name):
        return name
    return f"{HUB}{split_name(name)[0]}@{download(name).name}"


def file_hashes(name: str) -> dict[str, dict[str, str]]:
    """Return {"files": checksums by file name}, from the manifest of a model on the Hub; {} for any other model."""
    if not is_hub_name(name):
        return {}
    return {"files": {file: entry.crc32 for file, entry in read_manifest(download(name)).files.items()}}


def download(name: str | Path, *, foreign: bool = False) -> Path:
    """Download a model unless it is in the cache; return its folder, which is named after the commit.

    Only the files that make up a model are downloaded, never code or pickles, and their hashes are compared with
    those on the Hub.

    Args:
        name: The name of a model on the Hub.
        foreign: True if a transformers model may be downloaded as well.
    """
    from huggingface_hub import HfApi, hf_hub_download

    repository, _ = split_name(name)
    with named_errors(name, "read"):
        first = first_file(str(name), foreign=foreign)
        folder = first.parent
        lacking = missing_files(folder, str(name)) if first.name == MANIFEST else None
        # A model that is complete in the cache needs no further request.
        if lacking == []:
            return folder
        try:
            # By commit, because a branch may move between requests, and files from two commits may not fit together.
            info = HfApi().model_info(repository, revision=folder.name, files_metadata=True)
        except transfer_errors():
            if lacking is None and any(folder.glob("*.safetensors")):
                return folder  # the cache has weights; without a connection, their files cannot be checked
            raise
        files = {file.rfilename: file for file in info.siblings or ()}
        for file in [*model_files(str(name), files, lacking), *({CARD} & files.keys())]:
            path = Path(hf_hub_download(repository, file, revision=folder.name))
            if not has_hash(path, files[file]):
                remove(path)
                raise RunError(f"{name}: the hash of {file} differs from the one that the Hub lists; try again")
    return folder


def first_file(name: str, *, foreign: bool) -> Path:
    """Download the file of a model that is read first: the manifest, or the settings of a transformers model.

    The name of its folder is the commit to which the revision refers. Without a connection, the cached file is used.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    repository, revision = split_name(name)
    try:
        return Path(hf_hub_download(repository, MANIFEST, revision=revision))
    except EntryNotFoundError as error:
        if isinstance(error, LocalEntryNotFoundError):  # the Hub was not reached, and would not be for another file
            if foreign:
                with suppress(LocalEntryNotFoundError):
                    return Path(hf_hub_download(repository, CONFIG, revision=revision, local_files_only=True))
            raise
        if foreign:
            return Path(hf_hub_download(repository, CONFIG, revision=revision))
        raise InputError(
            f"{name}: is not a heedful model, as it has no {MANIFEST}; convert a transformers model first: "
            f"heedful convert {name} --out NAME"
        ) from error


def missing_files(folder: Path, name: str) -> list[str]:
    """List the files of a heedful model that are missing from its folder in the cache."""
    try:
        manifest = read_manifest(folder)
    except DamagedError as error:
        # Otherwise the next attempt would read the damaged file from the cache again.
        remove(folder / MANIFEST)
        raise RunError(f"{name}: {error.reason}; try again") from error
    return [file for file in manifest.files if DOWNLOADED_FILES.fullmatch(file) and not (folder / file).is_file()]


def model_files(name: str, files: Collection[str], lacking: Sequence[str] | None) -> Sequence[str]:
    """Return the files to download: `lacking`, or if it is None, the `files` that belong to a transformers model."""
    if lacking is None:
        foreign = [file for file in files if FOREIGN_FILES.fullmatch(file)]
        if not any(file.endswith(".safetensors") for file in foreign):
            raise InputError(f"{name}: has no weights in model.safetensors, and pickles are not downloaded")
        return foreign
    if absent := [file for file in lacking if file not in files]:
        raise InputError(f"{name}: lacks {', '.join(absent)}, which its {MANIFEST} lists; push the whole folder again")
    return lacking


def has_hash(path: Path, file: "RepoSibling") -> bool:
    """Return True if a file matches its hash on the Hub: SHA-256 for files in Git LFS, the git blob hash for others."""
    with path.open("rb") as stream:
        if file.lfs:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.lfs.sha256
        content = stream.read()
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return digest.hexdigest() == file.blob_id


def remove(path: Path) -> None:
    """Remove a file from the cache; it is usually a link, whose target is removed as well."""
    path.resolve().unlink()
    path.unlink(missing_ok=True)


@contextmanager
def folder_to_push(folder: str | Path | None, name: str | None) -> Iterator[Path]:
    """Yield the folder to export to; it is temporary if only a name on the Hub is given.

    An invalid name or a missing token is reported before anything is exported.
    """
    if name is None:
        if folder is None:
            raise InputError(f"give a folder to export to, or --push {HUB}OWNER/NAME")
    elif not is_hub_name(name):
        remedy = did_you_mean([f"{HUB}{name}"]) if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else f"write {HUB}OWNER/NAME"
        raise InputError(f"--push {name}: not a Hub repository name; {remedy}")
    else:
        from huggingface_hub import get_token
        from huggingface_hub.utils import validate_repo_id

        with named_errors(name, "write"):
            validate_repo_id(split_name(name)[0])
            if get_token() is None:
                raise InputError(f"{name}: pushing needs a Hub token; {LOGIN}")
    with TemporaryDirectory() as temporary:
        yield Path(temporary) / "model" if folder is None else Path(folder)


def push(folder: Path, name: str, *, private: bool = False) -> str:
    """Upload the files of a folder, except those in `.engines`, as one commit; return the commit's URL.

    A missing repository or branch is created. Files in the repository that the folder lacks are kept.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    repository, branch = split_name(name)
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    additions = [CommitOperationAdd(file, path) for file, path in names.items() if not file.startswith(f"{ENGINES}/")]
    api = HfApi()
    with named_errors(name, "write"):
        # None, unlike False, leaves the choice to the organisation. An existing repository keeps its visibility.
        repository = api.create_repo(repository, private=private or None, exist_ok=True).repo_id
        if private and not api.model_info(repository).private:
            raise InputError(f"{name}: exists and is public; make it private in its settings, or leave --private out")
        if branch:
            api.create_branch(repository, branch=branch, exist_ok=True)
        commit = api.create_commit(repository, additions, commit_message="Export from heedful", revision=branch)
    return commit.commit_url


@contextmanager
def named_errors(name: str | Path, access: str) -> Iterator[None]:
    """Replace huggingface_hub errors with errors that say what to do; `access` is "read" or "write"."""
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # otherwise it prints two lines per retry
    try:
        yield
    except transfer_errors() as error:
        kind, problem = explain(error, access, split_name(name)[1] or "main")
        raise kind(f"{name}: {problem}") from error
    finally:
        logging.set_verbosity(verbosity)


def transfer_errors() -> tuple[type[BaseException], ...]:
    from huggingface_hub.errors import HfHubHTTPError

    # HfHubHTTPError derives from the HTTP library's error, which differs between versions of huggingface_hub.
    return (OSError, ValueError, RuntimeError, *HfHubHTTPError.__bases__)


def explain(error: BaseException, access: str, revision: str) -> tuple[type[HeedfulError], str]:
    """Return the heedful error class for a huggingface_hub error, and a message with the problem and the remedy."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # If an upload fails or a file is not in the cache, the reason is the error's cause.
    hides = isinstance(error, RuntimeError | LocalEntryNotFoundError)
    reason = (hides and error.__cause__) or error
    status = reason.response.status_code if isinstance(reason, HfHubHTTPError) else None
    is_unreachable = isinstance(error, LocalEntryNotFoundError) or not isinstance(
        reason, OSError | ValueError | RuntimeError
    )
    # The first case that applies counts, so a class comes before its base class: GatedRepoError is a
    # RepositoryNotFoundError.
    cases = (
        (isinstance(error, HFValidationError), InputError, f"not a Hub repository name; write {HUB}OWNER/NAME"),
        (
            isinstance(reason, OfflineModeIsEnabled),
            RunError,
            "is not completely in the cache, but HF_HUB_OFFLINE is set; unset it to download the model",
        ),
        (
            isinstance(reason, GatedRepoError),
            InputError,
            f"its authors grant access on request; request it on the model's page on the Hub, then {LOGIN}",
        ),
        (
            isinstance(reason, RevisionNotFoundError),
            InputError,
            f"has no revision {revision}; give one of its branches, tags or commits",
        ),
        (
            isinstance(reason, RepositoryNotFoundError),
            InputError,
            f"does not exist on the Hub, or you have no access ({status}); check the name, or {LOGIN}",
        ),
        (
            status in (401, 403),
            InputError,
            f"the Hub rejects the token ({status}); {LOGIN}, using a token with {access} access",
        ),
        (
            isinstance(reason, EntryNotFoundError) and status,
            InputError,
            f"has neither {MANIFEST} nor {CONFIG}, and heedful reads no other models; check the name",
        ),
        (status is not None, RunError, f"the Hub returned an error ({status}); try again later"),
        (is_unreachable, RunError, f"the Hub cannot be reached, or the connection was lost ({reason}); try again"),
        (True, RunError, f"the transfer failed ({reason}); try again"),
    )
    return next((kind, problem) for holds, kind, problem in cases if holds)
