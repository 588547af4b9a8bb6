"""What ``python -m benchmarks auto`` runs and prints."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.harness.environment import environment
from benchmarks.harness.record import write_json
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.tuning.domains import domains_named
from xcorr_app.tuning.measure import Outcome, measure_domain, share_within

__all__ = ["SEED", "run_auto"]

SEED = 20261123
_WORST = 12


def run_auto(console: Console, names: Sequence[str], problems: int, seed: int, json_path: Path | None) -> None:
    """Measure the domains, print how good their choices are, and write every number."""
    domains = domains_named(names, device_limits(current_device()))
    outcomes: list[Outcome] = []
    for i, domain in enumerate(domains):
        share = problems // len(domains) + (i < problems % len(domains))
        found = measure_domain(domain, share, seed, functools.partial(_line, console))
        outcomes += found
        _print(console, domain.name, found)
    if len(domains) > 1:
        _print(console, "all domains", outcomes)
    if json_path is not None:
        rows = [asdict(outcome) | {"ratio": round(outcome.ratio, 4)} for outcome in outcomes]
        write_json({"environment": environment(), "seed": seed, "outcomes": rows}, json_path)
        _line(console, f"Written: {json_path}")


def _print(console: Console, name: str, outcomes: Sequence[Outcome]) -> None:
    if not outcomes:
        return
    worst = sorted(outcomes, key=lambda outcome: -outcome.ratio)
    on_device = sum(outcome.device_ratio <= 1.1 for outcome in outcomes) / len(outcomes)
    summary = (
        f"{name}: {len(outcomes)} problems, {share_within(outcomes):.1%} within 10 % of the best, "
        f"worst {worst[0].ratio:.2f} x (times on the device alone: {on_device:.1%}, "
        f"worst {max(outcome.device_ratio for outcome in outcomes):.2f} x)"
    )
    lines = [summary]
    for outcome in worst[:_WORST]:
        if outcome.ratio > 1.0:
            expected = outcome.expected.get(outcome.chosen) or 0.0, outcome.expected.get(outcome.best) or 0.0
            lines.append(
                f"  {outcome.ratio:6.3f} x  {outcome.chosen} {outcome.microseconds[outcome.chosen]:.1f} us "
                f"(expected {expected[0]:.1f}), best {outcome.best} {outcome.microseconds[outcome.best]:.1f} us "
                f"(expected {expected[1]:.1f}): {outcome.problem}"
            )
    for line in lines:
        _line(console, line)


def _line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
