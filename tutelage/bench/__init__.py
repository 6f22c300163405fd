"""How fast it is: tutelage beside other tools, side by side on one machine, each result checked before it is timed.

- `runner`: the bench itself, which `tutelage bench` calls. `cases`: what is compared, one file each.
- `peers`: the same computations with other tools, in a few lines each.
- `results`: from the file of a bench to rows with goals and verdicts.
"""
