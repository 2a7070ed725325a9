"""A real Slurm for the tests: on loopback, with ports, folders, users and keys of its own, gone when it is closed."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

#: What must be installed for a controller with nodes, and for its accounting.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel", "setpriv")
ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr")
NODES = ("cpu1", "cpu2", "big1", "gpu1")

CONF = """ClusterName=crossperf
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket{credentials}
CredType=cred/munge
SlurmctldPort={ctld}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
ReturnToService=2
MessageTimeout=5
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.log
GresTypes=gpu
DefMemPerCPU=100
NodeName=cpu[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port={nodes[0]},{nodes[1]} \
CPUs=2 CoresPerSocket=2 RealMemory=4000 Features=x86,cascade
NodeName=big1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={nodes[2]} \
CPUs=2 CoresPerSocket=2 RealMemory=16000 Features=x86,genoa
NodeName=gpu1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={nodes[3]} \
CPUs=2 CoresPerSocket=2 RealMemory=8000 Gres=gpu:fake:2 Features=gpu
PartitionName=cpu Nodes=cpu[1-2] Default=YES DefaultTime=60 MaxTime=INFINITE State=UP
PartitionName=big Nodes=big1 MaxTime=24:00:00 State=UP
PartitionName=gpu Nodes=gpu1 MaxTime=INFINITE State=UP
"""
DBD_CONF = """AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser={user}
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()


def until(true: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.02)


@dataclass
class Cluster:
    """A controller with three partitions, its nodes and, if asked, its accounting.

    Every daemon stays in the foreground as a child and is ended by the kernel when the test process goes, so
    that nothing is left behind, whatever happens.

    Parameters
    ----------
    plugin
        Fills the folder that holds slurm.conf with a job_submit.lua; ``None`` runs the controller without.
    nodes
        Which nodes to bring up; with none the controller takes jobs and holds them in its queue.
    more
        Lines to add to slurm.conf.
    accounts
        What sacctmgr adds before the controller comes up, as words after ``add``.
    requeue_s
        Seconds, five or more, that a job waits before it starts again; by default Slurm's two minutes.
    """

    plugin: Callable[[Path], None] | None = None
    nodes: Sequence[str] = NODES
    accounting: bool = False
    more: str = ""
    accounts: Sequence[str] = ()
    requeue_s: int | None = None
    folder: Path = field(init=False)
    daemons: list[subprocess.Popen[bytes]] = field(init=False, default_factory=list)
    _user: str = field(init=False, default_factory=lambda: pwd.getpwuid(os.getuid()).pw_name)

    @property
    def etc(self) -> Path:
        """Where slurm.conf and job_submit.lua are."""
        return self.folder / "etc"

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands speak to this cluster."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        return ours | {"SLURM_CONF": str(self.etc / "slurm.conf")}

    def __enter__(self) -> Cluster:
        # Not pytest's own folder: that one is closed to other users, and munged asks for a socket open to all.
        self.folder = Path(tempfile.mkdtemp(prefix="crossperf-slurm-"))
        self.folder.chmod(0o755)
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        for name in ("etc", "state", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir()
        self._configure()
        self._munged()
        if self.accounting:
            self._accounting()
        self.start_controller()
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node)
        until(lambda: self._idle_nodes() == set(self.nodes), "idle nodes")

    def _idle_nodes(self) -> set[str]:
        lines = self.output("sinfo", "-hN", "-o%N %T").splitlines()
        return {line.split()[0] for line in lines if line.split()[1] == "idle"}

    def _configure(self) -> None:
        self._ports = dict(zip(("ctld", "dbd", "sql"), free_ports(3), strict=True))
        # A job that is queued again waits until its former credential has expired.
        credentials = "" if self.requeue_s is None else f",cred_expire={self.requeue_s}"
        own = {"folder": self.folder, "user": self._user, "nodes": free_ports(len(NODES)), "credentials": credentials}
        conf = CONF.format(**own, **self._ports)
        if self.accounting:
            conf += f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStoragePort={self._ports['dbd']}\n"
            # Slurm speaks to its database through the munge socket that is named as a password here.
            conf += f"AccountingStorageHost=127.0.0.1\nAccountingStoragePass={self.folder}/munge.socket\n"
            conf += "AccountingStoreFlags=job_comment\n"
        conf += self.more
        if self.plugin is not None:
            conf += "JobSubmitPlugins=lua\n"
            self.plugin(self.etc)
        (self.etc / "slurm.conf").write_text(conf)
        for number in range(2):
            (self.folder / f"gpu{number}").touch()
        gres = f"NodeName=gpu1 Name=gpu Type=fake File={self.folder}/gpu[0-1]\n"
        (self.etc / "gres.conf").write_text(gres)

    def _munged(self) -> None:
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        paths = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munged.pid", "log-file": "munged.log"}
        paths["seed-file"] = "munged.seed"
        self._daemon("munged", "--foreground", "--force", *(f"--{o}={self.folder / n}" for o, n in paths.items()))
        until((self.folder / "munge.socket").exists, "munged")

    def _accounting(self) -> None:
        password, sql = secrets.token_hex(8), self.folder / "sql"
        lean = ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
        init = ["--no-defaults", f"--user={self._user}", f"--datadir={sql}", "--skip-test-db", *lean]
        subprocess.run(
            ["mariadb-install-db", *init, "--auth-root-authentication-method=normal"], check=True, capture_output=True
        )
        where = [f"--socket={sql}/sql.socket", f"--port={self._ports['sql']}", "--bind-address=127.0.0.1"]
        store = [f"--user={self._user}", f"--datadir={sql}", f"--pid-file={sql}/sql.pid"]
        self._daemon("mariadbd", "--no-defaults", *store, *where, *lean)
        until((sql / "sql.socket").exists, "mariadbd", 30.0)
        grant = f"create user slurm@'127.0.0.1' identified by '{password}'; grant all on *.* to slurm@'127.0.0.1';"
        self.output("mariadb", "--no-defaults", f"--socket={sql}/sql.socket", "-e", grant)
        conf = self.etc / "slurmdbd.conf"
        conf.touch(0o600)
        conf.write_text(DBD_CONF.format(folder=self.folder, user=self._user, password=password, **self._ports))
        self._daemon("slurmdbd", "-D")
        until(lambda: self.run("sacctmgr", "-n", "show", "cluster").returncode == 0, "slurmdbd", 30.0)
        for words in ("cluster crossperf", *self.accounts):
            self.output("sacctmgr", "-i", "add", *words.split())

    def start_controller(self) -> None:
        """Bring the controller up, and wait until it answers."""
        self._controller = self._daemon("slurmctld", "-D")
        until(lambda: "UP" in self.run("scontrol", "ping").stdout, "slurmctld")

    def stop_controller(self) -> None:
        """Take the controller down; nodes and state stay."""
        self._controller.terminate()
        self._controller.wait(20)

    def _daemon(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        with (self.folder / f"{program}.out").open("ab") as log:
            daemon = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(path), *options],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.daemons.append(daemon)
        return daemon

    def run(
        self, *command: str | Path, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands against this cluster, as an ordinary user where one is named."""
        become = (
            ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"] if user else []
        )
        return subprocess.run(
            [*become, *map(str, command)],
            env=self.environment | dict(env or {}),
            cwd=self.folder,
            check=False,
            text=True,
            capture_output=True,
            timeout=60,
        )

    def output(self, *command: str | Path) -> str:
        """Return what a command prints; one that fails raises."""
        done = self.run(*command)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, *options: str, wrap: str = "true") -> str:
        """Submit a job and return its number."""
        return self.output("sbatch", "--parsable", "-o/dev/null", *options, f"--wrap={wrap}").strip()

    def facts(self, job: str) -> dict[str, str]:
        """Return what the controller knows of a job."""
        words = self.output("scontrol", "-o", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def finish(self, *jobs: str) -> None:
        """Wait until jobs have ended."""
        until(lambda: not self.output("squeue", "-h", f"-j{','.join(jobs)}"), f"jobs {jobs}", 40.0)

    def cancel_all(self) -> None:
        """Cancel every job, and wait until none is left."""
        self.run("scancel", "--state=PENDING")
        self.run("scancel", "--state=RUNNING")
        until(lambda: not self.output("squeue", "-h").strip(), "an empty queue", 40.0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.daemons and self.daemons[-1].poll() is None and self.nodes:
            self.run("scancel", f"-u{self._user}")
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._end_steps()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_steps(self) -> None:
        """End what jobs have left: processes that were started with this cluster's configuration."""
        mark = f"SLURM_CONF={self.etc / 'slurm.conf'}".encode()
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    ours = mark in (process / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if ours:
                    subprocess.run(["kill", "-KILL", process.name], check=False, capture_output=True)
