"""What can be proved: `tt.prove.descend(problem, ...)`; each gives enclosures, or says in a sentence why it cannot."""

from tutelage.rigour.balls import CannotEnclose as CannotEnclose
from tutelage.rigour.descent import Descended as Descended
from tutelage.rigour.descent import Moment as Moment
from tutelage.rigour.descent import descend as descend
from tutelage.rigour.flow import Flowed as Flowed
from tutelage.rigour.flow import Instant as Instant
from tutelage.rigour.flow import flow as flow
from tutelage.rigour.inequalities import Inequality as Inequality
from tutelage.rigour.inequalities import inequalities as inequalities
from tutelage.rigour.inequalities import inequality as inequality
from tutelage.rigour.points import StationaryPoint as StationaryPoint
from tutelage.rigour.points import stationary as stationary
from tutelage.rigour.proofs import Proof as Proof
from tutelage.rigour.proofs import check as check
from tutelage.rigour.proofs import minimum as minimum
