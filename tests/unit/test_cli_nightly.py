"""``hermes nightly``: on a directory, as a job by its date, and what the report shows (SPEC §9)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from hermes_cli.main import app
from hermes_cli.nightly import MOST_SUBMISSIONS, submit
from hermes_memory import Memory
from jobs.page import page_of

ROOT = Path(__file__).parents[2]
HASH = {"kind": "hash", "calibration": "hash"}


class Client:
    """Ray's jobs: ids and how each stands."""

    def __init__(self, **jobs: str) -> None:
        self.jobs, self.submitted = jobs, []  # type: ignore[var-annotated]

    def list_jobs(self) -> list[Any]:
        return [
            SimpleNamespace(submission_id=name, status=SimpleNamespace(value=status))
            for name, status in self.jobs.items()
        ]

    def submit_job(self, *, entrypoint: str, submission_id: str) -> None:
        self.submitted.append((submission_id, entrypoint))


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SUCCEEDED"])
def test_a_job_of_the_date_is_joined(status: str) -> None:
    client = Client(night=status)
    assert (submit(client, "night", "go"), client.submitted) == ("night", [])


def test_a_failed_job_is_followed_by_another() -> None:
    client = Client(**{"night": "FAILED", "night-2": "STOPPED"})
    assert (submit(client, "night", "go"), client.submitted) == ("night-3", [("night-3", "go")])


def test_a_date_that_fails_for_ever_is_given_up() -> None:
    failed = {"night": "FAILED"} | {f"night-{n}": "FAILED" for n in range(2, MOST_SUBMISSIONS + 1)}
    with pytest.raises(typer.Exit):
        submit(Client(**failed), "night", "go")


def test_a_night_on_a_directory(tmp_path: Path) -> None:
    config, data, reports = tmp_path / "c.toml", tmp_path / "data", tmp_path / "reports"
    config.write_text('[embedder]\nkind = "hash"\ncalibration = "hash"\n')
    with Memory.open(data, embedder=HASH) as memory:
        memory.remember("ana", "I'm allergic to peanuts.")
    words = ["nightly", "--data", str(data), "--config", str(config), "--report", str(reports)]
    first = CliRunner().invoke(app, [*words, "--date", "2026-03-02"])
    assert first.exit_code == 0, first.output
    assert "1 users done, 0 not reached." in first.output
    report = json.loads((reports / "night-2026-03-02.json").read_text())
    assert report["users"]["done"] == 1 and report["namespaces"]["default"]["users"] == 1
    page = (reports / "night-2026-03-02.html").read_text()
    assert "<svg" in page and "peanut" not in page and "peanut" not in json.dumps(report)
    assert CliRunner().invoke(app, [*words, "--date", "soon"]).exit_code == 2
    with Memory.open(data, embedder=HASH):
        held = CliRunner().invoke(app, words)
    assert held.exit_code == 2


def test_the_page_escapes_names_shows_alarms_and_asks_nobody_for_anything() -> None:
    figure = {
        "name": "recall_hit_rate",
        "value": 0.25,
        "cases": 40,
        "least": 0.4,
        "most": None,
        "alarming": True,
    }
    page = page_of({
        "date": "2026-03-02", "now": "2026-03-02T03:00:00+00:00", "since": "2026-02-24", "users": {"done": 1},
        "profile_slots": 2, "failures": {"overloaded": 3}, "changes": {"decay/forgotten": 7}, "seconds": [1] + [0] * 12,
        "namespaces": {"<b>": {"users": 1, "memories": 2, "figures": [figure]}},
    })  # fmt: skip
    assert "&lt;b&gt;" in page and "25.0%" in page and "alarm" in page and "decay/forgotten" in page
    assert "<script" not in page and "src=" not in page and "<link" not in page


def test_the_cron_job_runs_what_the_cluster_runs() -> None:
    """deploy/kuberay: the image and the settings of the RayService."""
    cron = yaml.safe_load((ROOT / "deploy/kuberay/nightly.yaml").read_text())
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    service = (ROOT / "deploy/kuberay/rayservice.yaml").read_text()
    assert f"image: {container['image']}\n" in service
    assert container["command"][:2] == ["hermes", "nightly"]
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
