"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from .claiming import claim as claim
from .evidence import Evidence as Evidence
from .moves import Move as Move
from .parts import Deferred as Deferred
from .parts import Diagram as Diagram
from .parts import Figure as Figure
from .parts import Size as Size
from .parts import contents as contents
from .parts import deferred as deferred
from .recipe import Options as Options
from .recipe import Recipe as Recipe
from .recipe import Settings as Settings
from .study import Experiment as Experiment
from .study import Study as Study
from .sweep_result import Sweep as Sweep
