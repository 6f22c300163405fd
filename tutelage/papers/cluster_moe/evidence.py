"""What the claims look at."""

from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.evidence import PlainEvidence


class Evidence(PlainEvidence):
    """Settings, sizes and random numbers."""

    defaults = ClusterMoeSettings
    stream = 2027
