"""What tutelage is compared with: the same computations as one writes them with other tools, one short file each.

They are written to be read: a loss, an update, a loop. Nothing is left out that a user of the tool would do for speed
(compilation, scans, batches of seeds), and nothing is done that such a user would not.
"""
