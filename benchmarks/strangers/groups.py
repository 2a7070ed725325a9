"""Reads records in JSON, groups them, and prints sums; with a second file, makes such records out of CSV."""

# ruff: noqa: PTH123 - a plain script, whose time is that of json

import csv
import json
import sys
from collections import defaultdict

if len(sys.argv) > 2:
    with open(sys.argv[1]) as rows, open(sys.argv[2], "w") as file:
        rows = csv.DictReader(rows)
        json.dump([{**row, "value": float(row["value"]), "weight": int(row["weight"])} for row in rows], file)
else:
    with open(sys.argv[1]) as file:
        records = json.load(file)
    sums = defaultdict(float)
    for record in records:
        sums[record["group"]] += record["value"] * record["weight"]
    best = sorted(records, key=lambda record: (-record["value"], record["key"]))[:1000]
    print(json.dumps({"sums": {group: round(total, 2) for group, total in sorted(sums.items())}, "best": best}))
