"""What a person sees of an evaluation: one page, and its figures as files."""

from crossperf.report.folder import FOLDER, PAGE, write
from crossperf.report.page import render

__all__ = ["FOLDER", "PAGE", "render", "write"]
