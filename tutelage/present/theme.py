"""The house style of every picture: colours that colour-blind readers can tell apart, and quiet axes."""

from typing import Any

# Okabe and Ito's palette without its yellow (invisible on white), darkest contrasts first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5D5D5D")
INK = "#222222"
QUIET = "#6B6B6B"
GRID = "#E4E4E4"
FORMATS = (".png", ".pdf", ".svg")
DASHES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1, 1.6))}

RC: dict[Any, Any] = {
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with matplotlib, so pictures are alike on every machine
    "font.size": 9,
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "lines.solid_capstyle": "round",
    "legend.fontsize": 8,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "legend.borderpad": 0.3,
    "legend.labelspacing": 0.35,
    "legend.handlelength": 1.8,
    "errorbar.capsize": 2,
    "image.cmap": "cividis",
    "svg.hashsalt": "tutelage",
}

COLUMN = RC | {
    "font.family": "STIXGeneral",  # ships with matplotlib, and stands beside Times and Computer Modern
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "normal",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.0,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "pdf.fonttype": 42,  # as letters, which publishers ask for
    "savefig.dpi": 300,
}
"""In the column of a paper, where a caption stands in place of the title."""
