"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from .asked import Handover as Handover
from .asked import Stage as Stage
from .asked import seed_list as seed_list
from .dataset import provenance as provenance
from .findings import Certificate as Certificate
from .findings import Phase as Phase
from .measures import Measure as Measure
from .measures import Measured as Measured
from .measures import phase_times as phase_times
from .observables import Observable as Observable
from .observables import loss_orders as loss_orders
from .observables import population_loss as population_loss
from .observables import row_names as row_names
from .result import Run as Run
