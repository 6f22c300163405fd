"""What kernel methods and other linear features can reach, exactly.

- `harmonics`: spherical harmonics of |w.x|, and the sharp bound for any N features; `hermite`: polynomials.
- `features`: the best predictor in random features and in neural tangent features.
- `ridge`: kernel ridge regression on samples, its population loss without a test set.
- `hardness`: teachers that no few features can learn.
"""
