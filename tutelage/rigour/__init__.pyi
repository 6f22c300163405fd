"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from . import prove as prove
from .balls import CannotEnclose as CannotEnclose
from .balls import ball as ball
from .balls import precision as precision
from .forms import Form as Form
from .forms import form_of as form_of
from .gates import Gate as Gate
from .gates import Overlap as Overlap
from .gates import gate_of as gate_of
from .kernels import Kernel as Kernel
from .kernels import meeting as meeting
from .proofs import Proof as Proof
from .proofs import Provable as Provable
from .proofs import RefusedProof as RefusedProof
from .proofs import enclosing as enclosing
from .proofs import text as text
from .proofs import texts as texts
from .standing import Settled as Settled
from .standing import Settles as Settles
from .standing import Standing as Standing
