"""The house is in order: what importing costs, which names are public, what is not in the source."""

import ast
import re
import subprocess
import sys
from importlib import import_module, resources
from pathlib import Path

import pytest

import oneclass

SOURCE = Path(oneclass.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

OF_MODELS = (
    "fit partial_fit forget score_samples decision_function predict fit_predict p_values expected explain "
    "save to_bytes from_bytes offset_ window_ width_ C_ scale_ get_params set_params"
)
# The public names of the design that have been built so far, and the calls of each.
CALLS = {
    "KernelBoundary": OF_MODELS,
    "KernelReconstruction": OF_MODELS,
    "Watcher": "watch confirm to_bytes from_bytes",
    "Verdicts": "p_value to_dict __len__",
}
IN_MODULES = {
    "kernels": "RBF Laplacian Polynomial Linear RationalQuadratic Sum Product FunctionKernel Kernel",
    "checks": "check_detector yield_checks CHECKS",
    "errors": "OneClassError InvalidRowsError InvalidRowTypeError InvalidParameterError KernelError NotLearntError StateError "
    "StreamError NoAlarmWarning",
    "streams": "load names Stream translation rotation expansion surrounding unimodal multimodal gears regimes bursts ring",
}


def loaded_after(statement):
    """The top-level names of all modules that are loaded after a statement in a new interpreter."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    """`import oneclass` waits for neither NumPy, SciPy nor scikit-learn; the first name that is used does."""
    assert loaded_after("import oneclass; dir(oneclass); oneclass.__version__").isdisjoint({"sklearn", "scipy", "numpy", "pandas"})
    assert {"sklearn", "scipy", "numpy"} <= loaded_after("import oneclass; oneclass.KernelBoundary")


def test_no_extra_is_needed_to_learn():
    """A stream is watched, where pandas, polars, pyarrow and matplotlib are not installed."""
    hidden = "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow', 'matplotlib', 'pytest', 'hypothesis']))"
    use = "import oneclass as oc; print(oc.Watcher(oc.KernelBoundary(window=20)).watch([[i % 7.0] for i in range(50)]).alarm.size)"
    ran = subprocess.run([sys.executable, "-c", f"{hidden}; {use}"], capture_output=True, text=True, check=True)
    assert ran.stdout == "50\n"


def test_all_names_resolve():
    """Each name of `__all__` is there, is listed by `dir`, and is the same object every time; another is an AttributeError."""
    for name in oneclass.__all__:
        assert getattr(oneclass, name) is getattr(oneclass, name)
        assert name in dir(oneclass)
    assert set(CALLS) | set(IN_MODULES) | {"load"} <= set(oneclass.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = oneclass.Nothing


@pytest.mark.parametrize("name", CALLS)
def test_public_classes_have_the_calls_of_the_design(name):
    """Each public class has the calls that the design fixes."""
    missing = [call for call in CALLS[name].split() if call not in dir(getattr(oneclass, name))]
    assert missing == []


@pytest.mark.parametrize("name", IN_MODULES)
def test_public_modules_have_the_names_of_the_design(name):
    """Each public module has the names that the design fixes, as `oneclass.kernels.RBF` and by import."""
    module = import_module(f"oneclass.{name}")
    assert getattr(oneclass, name) is module
    assert [each for each in IN_MODULES[name].split() if not hasattr(module, each)] == []


def test_both_models_take_the_parameters_of_the_design():
    """The six parameters and their defaults are those of the design, in its order."""
    expected = {"kernel": "rbf", "width": "auto", "C": "auto", "alarm_rate": 0.05, "threshold": "leave-one-out", "window": None}
    for model in (oneclass.KernelBoundary, oneclass.KernelReconstruction):
        assert model().get_params() == expected


def imports_of(path):
    """The names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_state_is_pickled(path):
    """No file imports pickle or its like; only the contract kit does, which holds detectors to being picklable."""
    allowed = {"pickle"} if path.name == "checks.py" else set()
    assert {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"} & set(imports_of(path)) <= allowed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_global_random_state(path):
    """No file draws from NumPy's global generator or from `random`."""
    assert "random" not in set(imports_of(path))
    names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert names.isdisjoint({"seed", "rand", "randn", "RandomState"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_everything_public_is_documented(path):
    """Every module, and every public class and function in it, has a docstring."""
    tree = ast.parse(path.read_text())
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    public = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    assert [node.name for node in public if not ast.get_docstring(node)] == []
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_is_too_long(path):
    """No file has more than 400 lines: it would be about more than one thing."""
    assert len(path.read_text().splitlines()) <= 400


def test_the_package_says_that_it_is_typed():
    """`py.typed` lies in the package, so that type checkers of users read the annotations."""
    assert resources.files("oneclass").joinpath("py.typed").is_file()


def anchors_of(page):
    """The headings of a page, as a link names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Every relative link of a page leads to a file of the repository and, where it names one, to a heading of it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link
