"""Run by the peers' interpreter: mem0 takes in conversations by its default ``add``, asking the endpoint it is given.

    python -m bench.peers.mem0_replay URL DIMENSION

Standard input holds JSON lines ``{"user": …, "messages": [{"role": …, "content": …}, …]}``, each one ``add``. Before
each of them the endpoint is told what will be read, so that it can answer as a model would. What mem0 has stored is
printed at the end, as one JSON object: ``{"version": …, "adds": …, "stored": …}``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import urllib.request
from importlib.metadata import version
from typing import Any


def main(url: str, dimension: int) -> None:
    """Add until the input ends."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        memory = _memory(url, dimension, folder)
        adds = stored = 0
        for line in sys.stdin:
            one = json.loads(line)
            _announce(url, one["messages"])
            adds += 1
            stored += len(memory.add(one["messages"], user_id=one["user"])["results"])
        memory.close()
    print(json.dumps({"version": version("mem0ai"), "adds": adds, "stored": stored}))


def _memory(url: str, dimension: int, folder: str) -> Any:
    """mem0 with its own defaults but for where it asks and where it stores."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
    asked = {"api_key": "unused", "openai_base_url": url}
    store = {"collection_name": "bench", "path": f"{folder}/qdrant", "embedding_model_dims": dimension}
    return importlib.import_module("mem0").Memory.from_config(
        {
            "llm": {"provider": "openai", "config": asked},
            "embedder": {"provider": "openai", "config": {**asked, "embedding_dims": dimension}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
        }
    )


def _announce(url: str, messages: list[dict[str, str]]) -> None:
    request = urllib.request.Request(  # noqa: S310  # of this machine
        f"{url}/announce", json.dumps(messages).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30):  # noqa: S310
        pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
