"""``python -m bench.eval_vllm``, run by the engine's interpreter: 1 if anything is ungrounded, lost or doubled, else 0."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.eval_vllm.checking import checked
from bench.eval_vllm.deployment import deployed
from bench.eval_vllm.tables import Outcome, report
from bench.eval_vllm.turns import conversations
from bench.eval_vllm.watching import Seen, WatchedDistiller, WatchedModel
from bench.extraction_calls.talks import Talk
from bench.grounding import DATA_DIR
from bench.report import environment
from hermes_memory.app.commands import Export, Incoming, Ingest
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.runtime.host import UserHost
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_policy

RESULTS = Path(__file__).parents[1] / "results"
PATIENCE_S = 1_500.0
NAMESPACE = "eval"
SHIPPED = "extract-1"
PROMPTS = {
    "the shipped prompt": SHIPPED,
    "one that has it babble": str(Path(__file__).parent / "babble.toml"),
}


@dataclass(frozen=True, slots=True)
class Played:
    """What is there when all jobs have ended."""

    exports: Sequence[Mapping[str, Any]]
    jobs: Sequence[Mapping[str, Any]]
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Start, extract, look at everything, end."""
    from tests.engine.place import running

    parser = argparse.ArgumentParser(prog="python -m bench.eval_vllm", description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="how many turns, of either side")
    parser.add_argument("--max-tokens", type=int, default=320, help="of one answer")
    parser.add_argument("--model", default=str(running().model), help="the folder or the name of the model")
    parser.add_argument("--num-gpus", type=float, default=0.0, help="of the deployment")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    chosen = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if not DATA_DIR.exists():
        console.print(f"no {DATA_DIR.name}; DATA_DIR names the data folder")
        return 1

    def say(text: str) -> None:
        console.print(f"[dim]{text}[/dim]")

    surroundings, talks = environment(), conversations(chosen.turns)
    outcomes: list[Outcome] = []
    with deployed(_settings(chosen, SHIPPED), say) as ready_s:
        say(
            f"ready after {ready_s:.0f} s; {sum(len(talk.messages) for talk in talks)} turns of {len(talks)} users"
        )
        for name, prompt in PROMPTS.items():
            say(f"extracting with {name}")
            outcomes.append(_outcome(name, _settings(chosen, prompt), talks))
    made = report(outcomes, ready_s)
    for drawn in made.tables:
        console.print(drawn)
    console.print(f"saved {made.save(chosen.out, surroundings)}")
    return max(_told(console, one) for one in outcomes)


def _outcome(name: str, settings: Settings, talks: Sequence[Talk]) -> Outcome:
    """Extract everything, then look at what is stored."""
    seen = Seen()
    with tempfile.TemporaryDirectory(prefix="hermes-eval-") as folder:
        played = asyncio.run(_play(settings, Path(folder), talks, seen))
    verdict = checked(played.exports, _spoken(settings, talks), seen.read)
    turns = sum(len(talk.messages) for talk in talks)
    return Outcome(name, seen, played.jobs, verdict, turns, played.seconds)


def _settings(chosen: argparse.Namespace, prompt: str) -> Settings:
    engine: dict[str, Any] = {"max_model_len": 8192, "max_num_seqs": 16}
    engine |= {} if chosen.num_gpus else {"enforce_eager": True}
    extractor = {
        "kind": "vllm", "model": chosen.model, "num_gpus": chosen.num_gpus, "max_tokens": chosen.max_tokens, "prompt": prompt,
        "timeout_s": 600.0, "engine": engine,
    }  # fmt: skip
    return load_settings(None, {"extractor": extractor, "ledger": {"synchronous": "NORMAL"}})


async def _play(settings: Settings, folder: Path, talks: Sequence[Talk], seen: Seen) -> Played:
    """Everybody says everything at once, so that the engine batches; then all jobs are waited for."""
    from serve_app.deployments import served_model

    served = served_model(settings)
    if served is None:
        raise AssertionError
    embedder = build_embedder(settings)
    distiller = WatchedDistiller(build_distiller(settings, embedder, WatchedModel(served, seen)), seen)
    host = build_host("eval", settings, folder, distiller, embedder.info)
    await host.start()
    try:
        began = time.monotonic()
        jobs = await asyncio.gather(*(_say(host, talk) for talk in talks))
        took = time.monotonic() - began
        exports = [await host.ask(UserKey(NAMESPACE, talk.user), Export()) for talk in talks]
    finally:
        await host.stop()
    return Played(exports, [job for job in jobs if job is not None], took)


async def _say(host: UserHost, talk: Talk) -> dict[str, Any] | None:
    key = UserKey(NAMESPACE, talk.user)
    messages = tuple(
        Incoming(role=Role(one.role), content=one.text, id=f"m{number}")
        for number, one in enumerate(talk.messages)
    )
    command = Ingest(session_id=talk.user, messages=messages, timezone="UTC")
    accepted = await host.execute(key, command, f"say-{talk.user}")
    return await host.wait(key, accepted["job_id"], PATIENCE_S)


def _spoken(settings: Settings, talks: Sequence[Talk]) -> dict[tuple[str, str], tuple[str, str]]:
    """What was said, as the privacy gate lets it in."""
    mask = build_policy(settings).mask
    return {
        (talk.user, f"m{number}"): (one.role, mask(one.text))
        for talk in talks
        for number, one in enumerate(talk.messages)
    }


def _told(console: Console, run: Outcome) -> int:
    """The exit code, and why."""
    ended, verdict = Counter(job["status"] for job in run.jobs), run.verdict
    wrong = {name: ids for name, ids in asdict(verdict).items() if name != "memories" and ids}
    for name, ids in wrong.items():
        console.print(f"[red]{name}[/red]: {len(ids)}: {', '.join(ids[:20])}")
    if verdict.clean and set(ended) == {"done"}:
        console.print(
            f"[green]holds[/green]  {run.prompt}: nothing ungrounded, lost or doubled; every job is done"
        )
        return 0
    console.print(f"[red]missed[/red]  {run.prompt}: jobs: {dict(ended)}")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
