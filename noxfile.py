#!/usr/bin/env -S uv run --script
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.2.9"]
# ///
"""The gates of the project: each session is one job of the continuous integration, and needs no other."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYPROJECT = nox.project.load_toml("pyproject.toml")


def group(name: str) -> list[str]:
    """The requirements of one dependency group."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


@nox.session
def lint(session: nox.Session) -> None:
    """Style and layout are as ruff wants them; the extra `test` and the group `test` agree."""
    if group("test") != PYPROJECT["project"]["optional-dependencies"]["test"]:
        session.error("pyproject.toml: the extra 'test' and the dependency group 'test' differ; make them equal.")
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """The library is typed throughout, to mypy and to pyright."""
    session.install("-e", ".", *group("types"))
    session.run("mypy")
    # Pyright otherwise asks the network whether a newer one exists.
    session.run("pyright", env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})


@nox.session
def imports(session: nox.Session) -> None:
    """No module imports a floor above its own."""
    # Modules are found, not run, so the dependencies are not needed.
    session.install("--no-deps", "-e", ".")
    session.install(*group("imports"))
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """Every test that is not slow passes, and together they reach the lines they must."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", "--cov", *session.posargs)


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """The long numerical runs pass."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-m", "slow", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The examples in docstrings and pages give what they print; every script in examples/ runs."""
    session.install("-e", ".[test]", *group("examples"))
    pages = [page for page in ("README.md", "docs") if Path(page).exists()]
    session.run("python", "-m", "pytest", "src/oneclass", *pages)
    for example in sorted(Path("examples").glob("*.py")):
        session.run("python", str(example), env={"MPLBACKEND": "Agg"})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """The benchmarks in their short form: memory within its bounds, and no ratio at less than half of its own."""
    session.install("-e", ".[test]")
    session.run("python", "benchmarks/engine.py", "--quick", "--gate")
    session.run("python", "benchmarks/incremental_svdd.py", "--quick", "--gate")
    session.run("python", "benchmarks/rivals.py", "--quick")


if __name__ == "__main__":
    nox.main()
