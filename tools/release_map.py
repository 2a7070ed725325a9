"""Draw the map of the workloads of the model that ships, and write it into the package.

python tools/release_map.py    # some ten seconds; prints how many neighbours on the map are of the same application

Run it whenever the model that ships learned from another table; a test fails until then.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from crossperf.model import store
from crossperf.prediction import workload_map as maps


def main() -> None:
    """Write the map."""
    model = store.load()
    with threadpool_limits(1):
        drawn = maps.workload_map(model)
    path, most = Path(maps.__file__).with_name(maps.SHIPPED), np.iinfo(np.int16).max
    with path.open("wb") as file:
        np.savez_compressed(file, key=np.array(maps.key_of(model)), xy=np.round(drawn.xy_w2 * most).astype(np.int16))
    for count in (1, 5, 10):
        share = maps.share_of_same(drawn.xy_w2, model.cells.app_w, count)
        print(f"of the {count} nearest neighbours on the map, {share:.0%} are of the same application")
    print(f"{len(drawn.workloads):,} workloads, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
