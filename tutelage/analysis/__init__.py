"""What a trajectory and its loss mean: phases, landscape, claims, certificates.

- `phases`: crossings, plateaus, growth and tails detected in a trajectory.
- `landscape`: stationary points, Hessian spectra, kinds of points, levels of the loss.
- `certificates`: a run's numbers again, by independent routes.
- `claims`, `panels`: checkable statements with verdicts, and figures as data.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
