"""`hermes serve` on a machine without the GPU that its language model asks for: it comes up, says so, and reads by the rules."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.harness import ServerProcess, records, say

MANY = 64  # more than any machine that runs this has
CONFIG = f"""
[embedder]
kind = "hash"
calibration = "hash"

[actors]
hosts = 1

[extractor]
kind = "vllm"
num_gpus = {MANY}
delay_s = 0.1

[batch]
attempts = 2
"""


def test_it_serves_without_the_model_and_ends_as_it_should(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", CONFIG)
    server.start()
    try:
        told = server.log.read_text(encoding="utf-8")
        assert (
            f"waits: no node of this cluster offers {MANY} GPUs; turns are read by the rules meanwhile"
            in told
        )
        with server.client() as http:
            ready = http.get("/readyz").json()
            assert ready["status"] == "degraded"
            assert ready["checks"]["extractor"]["state"] == "waiting for a GPU"
            say(http, "ana", "I'm allergic to peanuts.", "ana-1")
            [memory] = records(http, "ana")
            assert memory["evidence"][0]["quote"] == "I'm allergic to peanuts"
            assert memory["evidence"][0]["extractor"].startswith("rules")
    finally:
        assert server.stop() == 0
    assert server.family() == []
