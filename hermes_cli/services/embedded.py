"""A Weaviate server by the download of Weaviate's own Python client."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from hermes_cli.services.cache import Tell
from hermes_cli.services.finding import WEAVIATE
from hermes_cli.services.installing import install, staging
from hermes_cli.services.settings import WeaviateSettings
from hermes_cli.services.trying import WayFailed, run

LIMIT_S = 600.0  # the client sets no limit of its own: it runs in a process that can be ended
PROGRAM = """\
import sys
from weaviate.embedded import EmbeddedOptions, EmbeddedV4

folder, version = sys.argv[1:]
options = EmbeddedOptions(binary_path=folder, persistence_data_path=folder, version=version)
EmbeddedV4(options).ensure_weaviate_binary_exists()
"""


def weaviate_by_download(settings: WeaviateSettings, tell: Tell) -> Path:
    """Let the client fetch the released program, and put it into the cache.

    Raises:
        WayFailed: no client here, or the download failed, as it does without a way to the internet.
    """
    if importlib.util.find_spec("weaviate") is None:
        raise WayFailed("weaviate-client is not installed (the extra `weaviate` brings it)")
    tell("weaviate: its client downloads the released server (a minute or so)")
    with staging() as folder:
        run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), settings.version],
            folder=folder,
            limit_s=LIMIT_S,
        )
        found = sorted(folder.glob("weaviate-*"))
        if not found:
            raise WayFailed("the download left no program")
        return install(found[0], WEAVIATE)
