"""How results are shown: figures, the HTML report, the command line; each a skin over public functions."""
