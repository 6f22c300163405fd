"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from . import prove as prove
from .balls import CannotEnclose as CannotEnclose
from .forms import Form as Form
from .forms import form_of as form_of
from .kernels import Kernel as Kernel
from .kernels import meeting as meeting
