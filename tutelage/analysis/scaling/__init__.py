"""Scaling laws: fitted with censored seeds, with intervals, and compared."""

from tutelage.analysis.scaling.choice import Choice as Choice
from tutelage.analysis.scaling.choice import choose as choose
from tutelage.analysis.scaling.fit import Comparison as Comparison
from tutelage.analysis.scaling.fit import Fit as Fit
from tutelage.analysis.scaling.fit import compare as compare
from tutelage.analysis.scaling.fit import fit as fit
