"""What runs a piece of work, and why: the answer that every domain's one choice gives, and all that ask it share."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Candidate:
    """One way to do the work.

    Attributes
    ----------
    engine : str
        Such as ``"fft"``, ``"direct"``, ``"tensor"``, ``"separable"`` or ``"opencv"``.
    kernel : str
        The kernel or variant that would run, by the name under which a user can ask for it; empty where the engine
        is a library's.
    microseconds : float or None
        Expected time of the whole work; None where no model tells.
    """

    engine: str
    kernel: str = ""
    microseconds: float | None = None

    @property
    def name(self) -> str:
        """Engine and kernel in one word."""
        return f"{self.engine}:{self.kernel}" if self.kernel else self.engine


@dataclass(frozen=True)
class Decision:
    """What runs, and why.

    Attributes
    ----------
    engine, kernel : str
        As in `Candidate`, of the one that runs.
    reason : str
        In words, for a person who asked with ``--explain``.
    candidates : tuple of Candidate
        All that could have run, the chosen one among them.
    """

    engine: str
    kernel: str = ""
    reason: str = ""
    candidates: tuple[Candidate, ...] = field(default=())

    @property
    def name(self) -> str:
        """Engine and kernel in one word."""
        return Candidate(self.engine, self.kernel).name

    def described(self) -> str:
        """Text for ``--explain``: what runs and why, then every candidate with its expected time, fastest first."""
        lines = [f"{self.name}: {self.reason}" if self.reason else self.name]
        timed = sorted((c for c in self.candidates if c.microseconds is not None), key=lambda c: c.microseconds or 0.0)
        untimed = [c for c in self.candidates if c.microseconds is None]
        lines += [f"  {c.microseconds:12.1f} us  {c.name}" for c in timed]
        lines += [f"  {'not modelled':>15}  {c.name}" for c in untimed]
        return "\n".join(lines)

    def as_record(self) -> dict[str, object]:
        """Return what ``run.json`` keeps of it."""
        expected = {c.name: c.microseconds for c in self.candidates}
        return {"engine": self.engine, "kernel": self.kernel, "reason": self.reason, "expected_microseconds": expected}
