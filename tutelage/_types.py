"""Names of types that every folder uses. `Array` is JAX's, from jaxtyping; NumPy's arrays of floats are `Numbers`."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
