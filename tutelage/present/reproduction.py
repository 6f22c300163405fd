"""What a reproduction of a paper gives: figures, checked claims, a certificate, and what crashed on the way."""

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tutelage.trajectory.findings import Certificate, Table

if TYPE_CHECKING:
    from tutelage.analysis.panels import Sheet
    from tutelage.study.parts import Figure, Size
    from tutelage.study.recipe import Settings
    from tutelage.study.study import Study


class DrawnFigure(NamedTuple):
    """A figure that was computed and drawn, with the files that hold it."""

    figure: "Figure"
    sheet: "Sheet"
    png: Path
    netcdf: Path
    seconds: float


@dataclass(frozen=True)
class Crash:
    """A part that raised an error instead of giving a result."""

    what: str
    message: str
    trace: str = ""

    @classmethod
    def of(cls, what: str, error: Exception) -> "Crash":
        """From a caught exception."""
        return cls(what, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class PaperResult:
    """Everything the report says of one paper. `seconds`: of its parts together. `coming`: parts not made yet."""

    paper: "Study"
    settings: "Settings"
    table: Table
    figures: tuple[DrawnFigure, ...] = ()
    certificate: Certificate | None = None
    seconds: float = 0.0
    size: "Size" = "quick"
    seeds: int = 0
    crashes: tuple[Crash, ...] = ()
    coming: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing crashed, no claim that must hold failed, and no certificate disagreed."""
        certified = self.certificate is None or self.certificate.ok
        return certified and not self.crashes and not self.table.broken

    def counts(self) -> dict[str, int]:
        """How many claims got each verdict."""
        return self.table.counts()
