"""What the claims look at."""

from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.evidence import PlainEvidence


class Evidence(PlainEvidence):
    """Settings, sizes and random numbers."""

    defaults = BeyondNtkSettings
    stream = 2026
