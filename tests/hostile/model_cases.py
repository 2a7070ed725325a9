"""Bad model folders: descriptions and arrays."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.hostile.case import (
    NO_LIST,
    NO_OBJECT,
    NO_TEXT,
    Case,
    at,
    changed,
    each,
    without,
)
from tests.hostile.targets import BY_NAME


def of_descriptions() -> Iterator[Case]:
    """Yield descriptions of models that do not fit their arrays, sealed with a digest of their own."""
    yield from each("model", [("model",), ("counters", 0), ("platforms", 0), ("workloads", 0, 0)], NO_TEXT)
    yield from each("model", [("counters",), ("platforms",), ("workloads",), ("platform_classes",)], NO_LIST)
    yield from each("model", [("settings",), ("fit",), ("versions",)], NO_OBJECT)
    for name in ("model", "counters", "platforms", "platform_classes", "settings", "fit", "versions", "training"):
        yield without("model", (name,), f"found no '{name}', expected one")
    swapped = ["cpu-b", "cpu-a", "gpu-a", "gpu-b"]
    yield changed("model", ("platforms",), swapped, "its platforms are not those of its features, in their order")
    yield changed("model", ("platforms",), ["cpu-a"], "do not fit together")
    yield changed("model", ("platforms",), ["cpu-a"] * 4, "do not fit together")
    yield changed("model", ("platform_classes",), [], "the platforms do not fit together")
    yield changed("model", ("counters",), ["x"], "its counters are not those of its features")
    yield changed("model", ("workloads",), [], "the columns of the cells do not fit together")
    yield changed("model", ("runnable",), ["cpu"], "'runnable' does not fit the workloads")
    yield changed("model", ("training",), "toy", at(("training",), "'toy'", "an object"))


#: Arrays of a model changed behind a digest that was made for them: the name, the change, the sentence.
def _arrays(target: str, name: str, change: Callable[[Any], Any], sentence: str, words: str) -> Case:
    def made() -> bytes:
        with np.load(io.BytesIO(BY_NAME[target].sound())) as held:
            arrays = dict(held)
        own = next(key for key in arrays if key.split("@")[0].endswith(name))
        whole = arrays.pop(own)
        if own.endswith("@place"):
            whole = whole.astype(np.int64) + np.arange(len(whole))
        arrays[own.removesuffix("@place")] = change(whole.copy())
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
        return packed.getvalue()

    return Case(target, f"{name}: {words}", made, sentence)


def _with(index: Any, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        wide[index] = value
        return wide

    return change


def of_arrays() -> Iterator[Case]:
    """Yield arrays that cannot be asked: not finite, of other shapes and types, indices that point nowhere."""
    for name in ("limits.target_2p", "encoder.mean_f", "part.weights_pf", "part.bias_p", "limits.contrast_2p"):
        for value in (np.nan, np.inf):
            yield _arrays("arrays", name, _with(0, value), f"holds {value}, expected finite numbers", str(value))
        yield _arrays("arrays", name, lambda a: a[..., :-1], r"which does not fit|does not load", "one too few")
        yield _arrays("arrays", name, lambda a: a[None], "has the shape .*, expected . axes", "an axis more")
        yield _arrays("arrays", name, lambda a: a.astype(str), "holds <U.*, expected float64", "texts")
        yield _arrays("arrays", name, lambda a: a > 0, "holds bool, expected float64", "truth values")
    for name in ("encoder.scale_f", "encoder.spread_f"):
        for value in (0.0, -1.0):
            yield _arrays("arrays", name, _with(0, value), "expected numbers above 0", str(value))
    yield _arrays("arrays", "part.kind", lambda _: np.array("pickle"), "KeyError: 'pickle'", "a kind that is not known")
    yield _arrays("arrays", "cells.source_n", _with(0, 99), "source holds 99, expected numbers from 0 to below 4", "99")
    yield _arrays("arrays", "cells.source_n", _with(0, -1), "source holds -1, expected", "-1")
    yield _arrays("arrays", "cells.workload_n", _with(0, 99), "workload holds 99, expected numbers from 0", "99")
    yield _arrays("arrays", "cells.workload_n", lambda a: a[:-1], "which does not fit n=23", "one too few")
    yield _arrays("arrays", "features.values_nf", lambda a: a[:-1], "its features do not fit its cells", "one too few")
    yield _arrays("arrays", "features.values_nf", _with((0, 0), np.inf), "holds inf, expected finite numbers", "inf")
    yield _arrays("arrays", "features.columns.names", lambda a: a[:-1], "22 columns for 21 names", "one too few")
    yield _arrays("trees", "forest.left_m", _with(0, 0), "holds a tree that does not end", "half a leaf")
    yield _arrays("trees", "forest.left_m", _with(2, 1), "holds a tree that does not end", "a cycle")
    yield _arrays("trees", "forest.right_m", _with(0, 10**6), "right_m holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.right_m", _with(0, -1), "right_m holds -1, expected indices", "-1")
    yield _arrays("trees", "forest.root_t", _with(0, 10**6), "root_t holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.feature_m", _with(0, 10**6), "feature_m holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.feature_m", _with(0, -2), "feature_m holds -2, expected indices", "-2")
    yield _arrays("trees", "forest.value_row_m", _with(0, 10**6), "value_row_m holds 1,000,000, expected", "beyond")
    yield _arrays("trees", "forest.threshold_m", _with(0, np.nan), "threshold_m holds nan, expected finite", "nan")
    yield _arrays("trees", "forest.leaf_values_lp", _with((0, 0), np.nan), "holds nan, expected finite numbers", "nan")
    yield _arrays("trees", "forest.leaf_values_lp", lambda a: a[:, :-1], "3 is out of bounds", "a column less")
    yield _arrays("trees", "forest.left_m", lambda a: a[:-1], "which does not fit m=", "one too few")
    yield Case("arrays", "no archive", lambda: b"PK", "does not load .BadZipFile")
    yield Case("arrays", "huge shape", lambda: _npz(b"(9000000000000,)"), "declares .* which .* bytes cannot hold")
    yield Case("arrays", "negative shape", lambda: _npz(b"(-1,)"), "does not load")
    yield Case("arrays", "an object", lambda: _npz(b"(1,)", b"|O"), "declares .* of object, which")
    yield Case("arrays", "a bomb", _bomb, r"arrays of .* bytes in a file of")


def of_blends() -> Iterator[Case]:
    """Yield arrays of the default model that cannot be asked, those of known workloads among them."""
    if "blend" not in BY_NAME:
        return
    known = "part.workloads"
    for name in (f"{known}.within_ff", f"{known}.contrast_wp", f"{known}.log_time_w", f"{known}.profiles.mean_wf"):
        for value in (np.nan, np.inf, 1e300):
            expected = f"holds {'inf' if value > 1 else value}, expected finite numbers"
            yield _arrays("blend", name, _with(-1, value), expected, str(value))
        yield _arrays("blend", name, lambda a: a[:-1], "does not fit|profiles are of", "one too few")
        yield _arrays("blend", name, lambda a: a[:0], "does not fit|profiles are of", "none")
        yield _arrays("blend", name, lambda a: a > 0, "holds bool, expected float32", "truth values")
    for name in (f"{known}.spread_p", f"{known}.profiles.spread_f"):
        for value in (0.0, -1.0):
            yield _arrays("blend", name, _with(-1, value), "expected numbers above 0", str(value))
        expected = "no finite number|expected numbers above 0 in single precision"
        yield _arrays("blend", name, _with(-1, 1e-300), expected, "1e-300")
        yield _arrays("blend", name, lambda a: a[:-1], "does not fit", "one too few")
    for name in (f"{known}.seen_vf", f"{known}.timed_w", f"{known}.profiles.seen_wf"):
        yield _arrays("blend", name, lambda a: a.astype(float), "holds float64, expected bool", "numbers")
        yield _arrays("blend", name, lambda a: a[..., :-1], "does not fit", "one too few")
        yield _arrays("blend", name, lambda a: a[None], "has the shape .*, expected . axes", "an axis more")
    for rows in (0, 1, 4):
        change, sentence = (lambda a, rows=rows: a[:rows]), f"platform_sf has {rows} rows, expected 5 for 4 sources"
        yield _arrays("blend", f"{known}.profiles.platform_sf", change, sentence, f"{rows} rows")
    yield _arrays("blend", f"{known}.profiles.mean_wf", _with(-1, 3e38), "no finite number", "3e38")
    for name in ("part.novelty.sigma", "part.novelty.ordinary_surprise", "part.nearness.unit"):
        for value in (0.0, -1.0):
            yield _arrays(
                "blend", name, lambda _, value=value: np.array(value), "expected a number above 0", str(value)
            )
    yield _arrays("blend", "part.novelty.encoder.weights.2", lambda a: a * 0 + 3e38, "its latent space has", "3e38")
    yield _arrays("blend", "part.lookup.missing_left_m", lambda a: a[:0], "which does not fit m=", "none")
    yield _arrays("blend", "part.process.axes_ek", _with(-1, 1e300), "no finite number", "1e300")


def _npz(shape: bytes, dtype: bytes = b"<f8") -> bytes:
    """Return an archive with one array of a header that is not true."""
    import zipfile

    header = b"{'descr': '" + dtype + b"', 'fortran_order': False, 'shape': " + shape + b", }"
    header += b" " * (117 - len(header)) + b"\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("fitted.part.bias_p.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return made.getvalue()


def _bomb() -> bytes:
    """Return an archive of a few hundred kilobytes that unfolds to 300 MB."""
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(300):
            member.write(bytes(2**20))
    return made.getvalue()
