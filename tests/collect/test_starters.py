from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.collect.starters import left_out, starters, workload


@pytest.mark.parametrize(
    ("command", "app", "input_"),
    [
        ("./lulesh2.0 -s 30", "lulesh2.0", "-s 30"),
        ("mpirun -n 4 lmp -in x", "lmp", "-in x ranks=4"),
        ("mpirun --mca btl self,vader --oversubscribe -np 2 ./app 7", "app", "7 ranks=2"),
        ("mpiexec.hydra -ppn 2 -n 8 ./app", "app", "ranks=8"),
        ("mpirun -n 1 true : -n 3 false", "true", ": -n 3 false ranks=4"),
        ("srun --ntasks=16 -c 2 --cpu-bind cores ./app in", "app", "in ranks=16"),
        ("srun -n16 -N 2 ./app", "app", "ranks=16"),
        ("python3 train.py --epochs 3", "train", "--epochs 3"),
        ("python3.11 -u -W ignore train.py", "train", ""),
        ("/usr/bin/python -m timeit pass", "timeit", "pass"),
        ("python3 -c pass", "python3", "-c pass"),
        ("java -Xmx1g -jar build/app.jar in", "app", "in"),
        ("java -cp classes:lib/x.jar Main 5", "Main", "5"),
        ("java Main.java", "Main", ""),
        ("sh run.sh 3", "run", "3"),
        ("bash -e run.sh", "run", ""),
        ("env OMP_NUM_THREADS=4 ./app 10", "app", "OMP_NUM_THREADS=4 10"),
        ("time -f %e ./app", "app", ""),
        ("timeout -k 5 60 ./app 1", "app", "1"),
        ("taskset -c 0-3 ./app", "app", ""),
        ("numactl --cpunodebind=0 -m 0 ./app", "app", ""),
        ("nice -n 10 stdbuf -oL ./app", "app", ""),
        ("mpirun -n 2 python3 solve.py grid", "solve", "grid ranks=2"),
        ("timeout 10 mpirun -n 2 env A=1 ./app", "app", "A=1 ranks=2"),
        ("Rscript fit.R data.csv", "fit", "data.csv"),
        ("mpirun", "mpirun", ""),
        ("python3", "python3", ""),
        ("env", "env", ""),
    ],
)
def test_a_command_is_named_after_the_program_it_runs(command: str, app: str, input_: str) -> None:
    named = workload(command.split())
    assert (named.app, named.input) == (app, input_)


@pytest.mark.parametrize(
    ("text", "app", "input_"),
    [
        ("./app 100", "app", "100"),
        ("exec ./app 100", "app", "100"),
        ("cd /tmp && ./app 100", "app", "cd /tmp && ./app 100"),
        ("A=1 python3 solve.py x", "solve", "A=1 x"),
        ("./app < in | sort", "app", "./app < in | sort"),
        ("for i in 1 2; do ./app $i; done", "app", "for i in 1 2; do ./app $i; done"),
        ("while :; do :; done", "sh", "while :; do :; done"),
        ("echo 'unclosed", "sh", "echo 'unclosed"),
        ("", "sh", ""),
    ],
)
def test_a_shells_text_is_named_after_its_first_program(text: str, app: str, input_: str) -> None:
    named = workload(["sh", "-c", text])
    assert (named.app, named.input) == (app, input_)


def test_an_option_of_a_launcher_that_is_not_in_the_table_may_have_a_value() -> None:
    assert workload(["mpirun", "--new-option", "7", "-n", "2", "sort", "x"]).app == "sort"


def test_ranks_are_read_from_the_launcher_or_from_what_it_set() -> None:
    assert workload(["mpirun", "-n", "4", "./app"]).ranks == 4
    assert workload(["./app"]).ranks is None
    assert workload(["./app"], {"OMPI_COMM_WORLD_SIZE": "8"}).ranks == 8
    assert workload(["srun", "./app"], {"SLURM_NTASKS": "3"}).ranks == 3
    assert workload(["mpirun", "./app", "-n", "9"]).ranks is None


def test_what_stays_in_front_of_the_program_is_known() -> None:
    assert workload(["timeout", "9", "nice", "mpirun", "-n", "2", "./app"]).behind == ("timeout", "mpirun")
    assert workload(["env", "A=1", "./app"]).behind == ()
    assert {"mpirun", "orted", "hydra_pmi_proxy", "srun", "timeout", "env"} <= left_out()
    assert not {"sh", "python3", "python", "java", "bash"} & left_out()


def test_no_name_stands_twice_in_the_table() -> None:
    names = [name for each in starters() for name in each.names]
    assert len(names) == len(set(names))
    assert not [name for name in names if Path(name).name != name]
