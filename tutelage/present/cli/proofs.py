"""Commands for what is proved: `prove` makes proofs, `verify` checks them by a checker of its own."""

from pathlib import Path
from typing import Annotated

import typer

from tutelage.present.cli.options import Json, Quiet, StudyName, named, print_json, stoppable, tell


def prove(
    study: StudyName,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Prove this statement; may be repeated.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", parser=named, metavar="DIR", help="Folder for the proofs; default: proofs.")
    ] = Path("proofs"),
    listed: Annotated[bool, typer.Option("--list", help="Only say what can be proved, and how long it takes.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove statements about a study, each in a file of its own.

    It is done in ball arithmetic: what is proved is true of the exact numbers, roundings included. `tutelage verify`
    checks the files.

    \b
    Example:
      tutelage prove relu_teachers --only P1-ANGLE
    """
    from tutelage._files import check_folder
    from tutelage._interrupt import stop_asked
    from tutelage._progress import listening
    from tutelage.present.progress import Progress
    from tutelage.study.registry import get

    chosen = get(study).provable(only or ())
    if listed:
        rows = [{"id": each.id, "where": each.where, "says": each.words, "seconds": each.seconds} for each in chosen]
        if as_json:
            print_json(rows)
        else:
            for row in rows:
                typer.echo(f"{row['id']} ({row['where']}), about {row['seconds']:g} s: {row['says']}")
        return
    check_folder(out)
    made, files = [], []
    with Progress(quiet=quiet, title=f"proving {study}") as progress, listening(progress), stoppable(KEPT):
        for each in chosen:
            if stop_asked():
                raise KeyboardInterrupt
            proof, file = each.make(), out / each.file
            proof.save(file)
            made.append(proof)
            files.append(file)
    if as_json:
        print_json([proof.content() for proof in made])
    elif not quiet:
        for proof, file in zip(made, files, strict=True):
            typer.echo(f"{proof.id}: {proof!r}")
            tell(file)


KEPT = "the proofs that were written are kept"


def verify(
    files: Annotated[
        list[Path],
        typer.Argument(parser=named, metavar="PROOF.json", help="Files of `tutelage prove`, or a study: all it ships."),
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check proofs by a separate checker, which refuses changed ones.

    \b
    Example:
      tutelage verify proofs/P1-ANGLE-k2.json
      tutelage verify both_layers
    """
    from tutelage.rigour.proofs import RefusedProof, check

    found, refused = [], False
    for file in (each for given in files for each in _meant(given)):
        try:
            says, enclosed = check(file)
        except RefusedProof as error:
            typer.echo(f"tutelage: {error}", err=True)
            refused = True
            continue
        balls = {name: value.str(12) for name, value in enclosed.items()}
        found.append({"file": str(file), "says": says, "enclosed": balls})
        if not (as_json or quiet):
            typer.echo(f"{file}: proved. {says}")
            for name, value in balls.items():
                typer.echo(f"  {name}: {value}")
    if as_json:
        print_json(found)
    if refused:
        raise typer.Exit(1)


def _meant(given: Path) -> list[Path]:
    """A file, or those that a study ships."""
    from tutelage._errors import BadInput
    from tutelage.study.registry import get

    if given.suffix or given.exists():
        return [given]
    study = get(str(given))
    if not study.proofs or study.shipped is None:
        raise BadInput(f"{study.name} ships no proofs; relu_teachers ships some.")
    return [study.shipped / each.file for each in study.proofs]
