"""The table of bad inputs: what stands in a file, and the sentence that its reader answers with.

A case is the name of a reader, a name of its own, the bytes of the file, and a pattern of the sentence. Most are made
from small tables: every document with every fault that a document can have, every field with every value that it may
not hold.
"""

from __future__ import annotations

from tests.hostile.case import (
    Case,
    faulty_documents,
)
from tests.hostile.document_cases import of_evaluations, of_platforms, of_predictions, of_transfers
from tests.hostile.model_cases import of_arrays, of_blends, of_descriptions
from tests.hostile.table_cases import of_lines, of_mappings, of_rows, of_tables

CASES: list[Case] = [
    *faulty_documents(),
    *of_predictions(),
    *of_platforms(),
    *of_evaluations(),
    *of_descriptions(),
    *of_arrays(),
    *of_blends(),
    *of_rows(),
    *of_lines(),
    *of_tables(),
    *of_mappings(),
    *of_transfers(),
]
