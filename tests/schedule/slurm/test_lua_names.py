"""``crossperf.lua`` and Python give jobs the same names, keys the same digests and lines the same sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossperf.schedule.slurm.table import checksum, digest_of
from tests.schedule.slurm.lua import NOTHING, run, twins

SCRIPTS = [
    "",
    "#!/bin/bash\n#SBATCH -N 2\n",
    "#!/bin/bash\nsrun ./lmp",
    "module load x\nexport A=b\nOMP_NUM_THREADS=4 srun -n 4 --mpi=pmix --cpu-bind cores /opt/lmp/bin/lmp -in in",
    "./prepare\nmpirun -np 8 --mca btl self --bind-to core ./solve in",
    "mpirun --oversubscribe -x LD_LIBRARY_PATH solve",
    "python3 -u train.py --epochs 3",
    "srun python3.11 -m my.package --x",
    "srun python",
    "time ./a.out",
    "env A=1 B=2 nice ./a.out",
    "$APP --x",
    "srun $APP\n./other",
    "srun -n $SLURM_NTASKS ./app",
    "A=$(pwd) ./app",
    "cd dir && ./app",
    "'./quoted app'",
    '"/opt/x y"',
    "./a.out > out 2>&1",
    "  \t ./indented",
    "srun -n 4 \\\n   --exclusive \\\n   ./continued",
    "srun",
    "srun -n",
    "/",
    "( ./sub )",
    "exit",
    "./dir/",
    "julia --project=. run.jl",
    "bash run.sh",
    "if true; then\n  srun ./inside\nfi",
    "ibrun ./tacc",
    "a=b",
    "-x",
    "é/è",
]


def test_the_controller_and_python_give_jobs_the_same_names(lua: str, folder: Path) -> None:
    comments = [
        "",
        "app=x",
        "app=x input=y",
        "input=a=b;app=z",
        "app=a%20b",
        "app= input=",
        "crossperf=off",
        "noise, app=q",
    ]
    comments += [
        "APP=x",
        'app="my code" input="n=64 block=8";x=y',
        'app="open',
        'app=""',
        "app=first app=second",
        "crossperf=on",
        "app=100%",
    ]
    jobs: list[dict[str, Any]] = [{"name": "job", "script": script} for script in SCRIPTS]
    jobs += [{"name": "job", "comment": comment} for comment in comments]
    jobs += [{"name": "job", "min_nodes": nodes} for nodes in (NOTHING, 1, 2, 3, 5, 64, 65, 1000)]
    twins(lua, folder, jobs)


WORDS = [
    "srun",
    "mpirun",
    "-n",
    "4",
    "./a",
    "b/c",
    "python3",
    "-m",
    "x.y",
    "A=1",
    "$B",
    "time",
    "cd",
    "--mca",
    "\\\n",
    "'q'",
    ";",
    "&&",
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from([*WORDS, "\n", "#"]), max_size=12), min_size=1, max_size=40))
def test_they_agree_on_scripts_that_nobody_would_write(folder: Path, scripts: list[list[str]]) -> None:
    twins("lua5.1", folder, [{"name": "job", "script": " ".join(words)} for words in scripts])


def test_the_digests_of_keys_are_the_same_in_both(lua: str, folder: Path) -> None:
    keys = [("lmp", "ann", "melt"), ("", "", ""), ("Ω\t%", "x" * 500, "a;b"), ("é" * 90, "", "nodes-4")]
    program = """
    local c = dofile(FOLDER .. "/crossperf.lua")
    for _, k in ipairs(CASES) do print(text(c.digest_of("0a1b2c3d", k[1], k[2], k[3]))) end
    """
    assert run(lua, folder, keys, program) == [digest_of(key, "0a1b2c3d") for key in keys]


def test_the_sums_of_lines_are_the_same_in_both(lua: str, folder: Path) -> None:
    texts = ["", "a", "key\tlmp\t\t", "Ω" * 50, "z" * 1000]
    program = (
        'local c = dofile(FOLDER .. "/crossperf.lua")\nfor _, t in ipairs(CASES) do print(text(c.checksum(t))) end'
    )
    assert run(lua, folder, texts, program) == [checksum(text.encode()) for text in texts]
