"""Writes docs/api/*.md: one page per folder of the package, from its files."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tutelage"
TARGET = Path(__file__).parent / "api"
LAYERS = {
    "problem": "What is to be learned, and by whom.",
    "rigour": "What can be proved.",
    "oracle": "What the loss and its derivatives are.",
    "dynamics": "How the student moves.",
    "trajectory": "What was seen.",
    "analysis": "What it means.",
    "store": "What is known already.",
    "papers": "What is claimed.",
    "study": "What is studied, and what many runs say together.",
    "bench": "How fast it is.",
    "present": "How it is shown.",
}
NOTE = "<!-- Made by docs/make_api.py (`make pages`); do not edit. -->"


def public_names() -> list[tuple[str, str]]:
    """Names at the top of the package, with the modules that define them."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    found = {
        (alias.name, f"tutelage.{node.module}")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if not alias.name.startswith("_")
    }
    return sorted(found, key=lambda pair: (pair[0].lower(), *pair))


def modules(layer: str) -> list[str]:
    """Public modules of a folder, folders inside it included."""
    files = sorted((PACKAGE / layer).rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name for name in names if not name.rsplit(".", 1)[1].startswith("_")]


def index() -> str:
    rows = [f"| `tutelage.{name}` | [`{module}`][{module}] |" for name, module in public_names()]
    names = "\n".join(["| name | defined in |", "|---|---|", *rows])
    return (
        f"# Python\n\n{NOTE}\n\nEverything needed for everyday work is at the top of the package:\n\n{names}\n\n"
        "The verbs, and what can go wrong:\n\n::: tutelage.verbs\n\n::: tutelage._errors\n"
    )


def page(layer: str) -> str:
    parts = [f"# {layer}", NOTE, LAYERS[layer], *(f"::: {module}" for module in modules(layer))]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """The pages by their places."""
    return {TARGET / "index.md": index()} | {TARGET / f"{layer}.md": page(layer) for layer in LAYERS}


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
