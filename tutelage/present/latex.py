"""Checked claims as a table of LaTeX, for a paper: `booktabs`, numbers in mathematics."""

import math

from tutelage._plain import number
from tutelage.trajectory.findings import Checked, Table

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
RELATIONS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">", "=": "=", "==": "=", "in": r"\in"}


def claims(table: Table) -> str:
    r"""The table: claim, place, verdict, measured value with its interval, bound.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.present.latex import claims
    >>> print(claims(tt.papers.both_layers().check(only=["BL43"])))
    \begin{tabular}{lllll}
    \toprule
    claim & place & verdict & measured & bound \\
    \midrule
    BL43 & Figure 1, caption & fails & $1.414$ & $\le 10^{-8}$ \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>

    ```
    """
    head = ("claim", "place", "verdict", "measured", "bound")
    lines = [_line(head), r"\midrule", *(_line(_cells(row)) for row in table.rows)]
    begin, end = r"\begin{tabular}{" + "l" * len(head) + "}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", *lines, r"\bottomrule", end, ""])


def _line(cells: tuple[str, ...]) -> str:
    return " & ".join(cells) + r" \\"


def _cells(row: Checked) -> tuple[str, ...]:
    claim, found = row.claim, row.finding
    interval = found.interval
    measured = _number(found.measured)
    if measured and interval is not None:
        measured += rf"\ [{_number(interval.low)}, {_number(interval.high)}]"
    bound = _number(found.bound)
    relation = RELATIONS.get(found.relation, rf"\mathrel{{\mathrm{{{escaped(found.relation)}}}}}")
    return (
        escaped(claim.id), escaped(claim.where), escaped(row.verdict), f"${measured}$" if measured else "--",
        f"${relation} {bound}$" if bound else "--",
    )  # fmt: skip


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    ```python
    >>> from tutelage.present.latex import escaped
    >>> escaped("at least 90 % of P1_ANGLE")
    'at least 90 \\% of P1\\_ANGLE'

    ```
    """
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def _number(value: float | None) -> str:
    """In mathematics, without dollars; blank if there is none."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return r"\mathrm{nan}" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    mantissa, _, power = number(value).partition("e")
    if not power:
        return mantissa
    factor = "" if mantissa == "1" else "-" if mantissa == "-1" else rf"{mantissa}\times "
    return rf"{factor}10^{{{int(power)}}}"
