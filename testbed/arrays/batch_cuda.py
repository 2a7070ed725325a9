#!/usr/bin/env python3
"""Times array programs on the GPU for a campaign, as batch.py does on the CPU."""

from __future__ import annotations

import sys

from batch import main

if __name__ == "__main__":
    sys.exit(main("cuda"))
