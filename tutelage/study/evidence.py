"""What the claims of a study look at: its runs and sweeps at the settings that are checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutelage.study.parts import Size
from tutelage.study.recipe import Settings
from tutelage.trajectory.result import Run

if TYPE_CHECKING:
    from tutelage.study.measuring import Wanted
    from tutelage.study.study import Study
    from tutelage.study.sweep_result import Sweep


@dataclass(frozen=True)
class Evidence:
    """Runs and sweeps of a study, made when they are asked for; with a store in use claims share them.

    `seeds` is how many a statement gets, and `size` is "quick" or "full".
    """

    study: "Study"
    settings: Settings
    size: Size
    seeds: int

    def run(
        self, *, dynamics: str | None = None, seeds: int | None = None, settings: Mapping[str, Any] | None = None
    ) -> Run:
        """A run at the settings that are checked, with changes."""
        return self.study.run(self._changed(settings), dynamics=dynamics, seeds=seeds or self.seeds)

    def sweep(
        self,
        *,
        over: Mapping[str, Any],
        measure: "Wanted | Sequence[Wanted]",
        dynamics: str | None = None,
        seeds: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> "Sweep":
        """A sweep from the settings that are checked, with changes."""
        from tutelage.study.study import Experiment
        from tutelage.study.sweep import sweep

        return sweep(
            Experiment(self.study, self._changed(settings)), over=over, measure=measure, dynamics=dynamics,
            seeds=seeds or self.seeds,
        )  # fmt: skip

    def _changed(self, settings: Mapping[str, Any] | None) -> Settings:
        own = self.settings.model_dump(mode="json")
        return self.study.configure(own | dict(settings)) if settings else self.settings
