"""Run docs/tutorial.ipynb from top to bottom and keep its outputs, which the site shows.

python tools/tutorial.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tutorial.ipynb"


def main() -> None:
    """Execute the notebook in a folder of its own, and leave out what differs from run to run without a meaning."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if "execution_count" in output:
                    output["execution_count"] = None
    nbformat.write(notebook, NOTEBOOK)
    print(f"wrote {NOTEBOOK.name}")


if __name__ == "__main__":
    main()
