"""Every example runs and says what it should."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.slow
def test_the_tutorial_runs_from_top_to_bottom(tmp_path: Path) -> None:
    import nbclient
    import nbformat

    notebook = nbformat.read(Path(__file__).parent.parent / "docs" / "tutorial.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def test_importing_the_package_loads_neither_torch_nor_polars_nor_scikit_learn() -> None:
    code = (
        "import sys, crossperf; from crossperf import runs, model, records; "
        "print([name for name in ('torch', 'polars', 'sklearn', 'click') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
