"""Updates of proved descent in a second, against precision and number of students: the table of docs/proved.md.

python benchmarks/proved.py
"""

import time

import numpy as np

import tutelage as tt

CASES = [(6, bits) for bits in (128, 256, 512, 1024)] + [(students, 256) for students in (3, 12, 24)]
TEACHERS, UPDATES, STEP = 2, 300, "1/1000"


def speed(students: int, bits: int) -> tuple[float, float]:
    """Updates in a second of CPU, and the relative radius of the loss after them."""
    dim = TEACHERS + students
    first = np.random.default_rng(0).normal(size=(students, dim)) / dim
    problem = tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("relu", first=np.eye(TEACHERS, dim)),
        student=tt.TwoLayer("relu", first=first, trains=("first",)),
    )
    began = time.process_time()
    loss = tt.prove.descend(problem, STEP, UPDATES, bits=bits, most_bits=bits, radius=1.0)["loss"][UPDATES]
    return UPDATES / (time.process_time() - began), float(loss.rad() / loss)


if __name__ == "__main__":
    speed(*CASES[0])  # what is loaded once
    print(f"| students | bits | updates a second | relative radius of the loss after {UPDATES} |")
    print("|---|---|---|---|")
    for students, bits in CASES:
        rate, radius = speed(students, bits)
        print(f"| {students} | {bits} | {rate:.0f} | {radius:.0e} |")
