//! A campaign on Slurm: a private cluster of three nodes on this machine, without the system's own configuration.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{Fleet, GOOD, change};
use crate::support::{Answer, ModelServer, gemini, skipped, within_a_minute};

/// The programs that a cluster consists of.
const PROGRAMS: [&str; 5] = ["munged", "slurmctld", "slurmd", "sbatch", "scontrol"];

/// A cluster; everything that belongs to it ends with it.
struct Cluster {
    dir: TempDir,
    daemons: Vec<Child>,
    nodes: Vec<(String, Child)>,
}

impl Cluster {
    /// Starts a cluster, if Slurm is installed and the user is root.
    fn start() -> Option<Self> {
        let is_there = |name: &&str| {
            let places = ["/usr/sbin", "/usr/bin"].map(|place| Path::new(place).join(name));
            places.iter().any(|place| place.is_file())
        };
        let missing: Vec<_> = PROGRAMS.iter().filter(|name| !is_there(name)).collect();
        if !missing.is_empty() || !rustix::process::geteuid().is_root() {
            skipped(&format!("Slurm needs root and {missing:?}"));
            return None;
        }
        // The path of a socket must be short.
        let dir = tempfile::Builder::new()
            .prefix("s")
            .tempdir_in("/tmp")
            .unwrap();
        let mut cluster = Self {
            dir,
            daemons: Vec::new(),
            nodes: Vec::new(),
        };
        cluster.write_configuration();
        cluster.start_daemons();
        Some(cluster)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write_configuration(&self) {
        let open = |path: &str, mode: &str| {
            fs::create_dir_all(self.path(path)).unwrap();
            assert!(status("chmod", &[mode, self.path(path).to_str().unwrap()]));
        };
        open(".", "755");
        for folder in ["run", "state", "log", "spool/n1", "spool/n2", "spool/n3"] {
            open(folder, "755");
        }
        open("munge", "700");
        let key: Vec<u8> = (0..1024).map(|_| fastrand::u8(..)).collect();
        fs::write(self.path("munge/munge.key"), key).unwrap();
        assert!(status(
            "chmod",
            &["400", self.path("munge/munge.key").to_str().unwrap()]
        ));
        let port = || {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let nodes: String = (1..=3)
            .map(|node| {
                format!(
                    "NodeName=n{node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={} CPUs=4 Boards=1 SocketsPerBoard=1 \
                     CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN\n",
                    port()
                )
            })
            .collect();
        let d = self.dir.path().display();
        let text = format!(
            "ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={}
AuthType=auth/munge
AuthInfo=socket={d}/run/munge.sock
CryptoType=crypto/munge
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd-%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MpiDefault=none
PropagateResourceLimits=NONE
ReturnToService=2
JobRequeue=1
SlurmdParameters=config_overrides
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=5
MaxArraySize=10001
MaxJobCount=20000
{nodes}PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
",
            port()
        );
        fs::write(self.path("slurm.conf"), text).unwrap();
    }

    fn start_daemons(&mut self) {
        let d = self.dir.path().display().to_string();
        let munge = [
            "-F".to_owned(),
            format!("--key-file={d}/munge/munge.key"),
            format!("--socket={d}/run/munge.sock"),
            format!("--pid-file={d}/munge/munged.pid"),
            format!("--log-file={d}/munge/munged.log"),
            format!("--seed-file={d}/munge/seed"),
        ];
        let munge = self.command("munged", &munge.each_ref().map(String::as_str));
        self.daemons.push(daemon(munge));
        let socket = self.path("run/munge.sock");
        assert!(within_a_minute(|| socket.exists()), "{}", self.log());
        self.daemons
            .push(daemon(self.command("slurmctld", &["-D"])));
        assert!(
            within_a_minute(|| self.says("scontrol", &["ping"]).contains(" UP")),
            "{}",
            self.log()
        );
        for node in ["n1", "n2", "n3"] {
            let child = daemon(self.command("slurmd", &["-D", "-N", node]));
            self.nodes.push((node.to_owned(), child));
        }
        let idle = || {
            self.says("sinfo", &["-h", "-N", "-o", "%T"])
                .matches("idle")
                .count()
        };
        assert!(within_a_minute(|| idle() == 3), "{}", self.log());
    }

    /// A command of the cluster.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLURM_CONF", self.path("slurm.conf"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/usr/bin:/bin"));
        command.stdin(Stdio::null());
        command
    }

    fn says(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program, arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Releases the indices that wait after a requeue, and returns the number of those that have not ended.
    fn left(&self) -> usize {
        // Polling must leave time for other work.
        std::thread::sleep(Duration::from_millis(100));
        let jobs = self.says("squeue", &["-h", "-r", "-o", "%i %T %r"]);
        for job in jobs.lines().filter(|job| job.ends_with(" BeginTime")) {
            let job = format!("jobid={}", job.split(' ').next().unwrap());
            self.says("scontrol", &["update", &job, "starttime=now"]);
        }
        jobs.lines().count()
    }

    /// Waits until all but `left` indices have ended; fails after a minute in which none ends.
    fn ends_but(&self, left: usize) -> bool {
        let mut before = self.left();
        while before > left {
            if !within_a_minute(|| self.left() < before) {
                return false;
            }
            before = self.left();
        }
        true
    }

    /// Returns the processes of the cluster, or of one of its nodes.
    fn processes(&self, node: Option<&str>) -> Vec<String> {
        let configuration = format!("SLURM_CONF={}", self.path("slurm.conf").display());
        let node = node.map(|node| format!("SLURMD_NODENAME={node}"));
        let belongs = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            let has = |wanted: &str| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|one| one == wanted.as_bytes())
            };
            has(&configuration) && node.as_deref().is_none_or(has)
        };
        let all = fs::read_dir("/proc").unwrap();
        let all = all.map(|entry| entry.unwrap().path()).filter(belongs);
        all.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .collect()
    }

    /// Kills a node: its daemon, its steps, and all their processes.
    fn kill(&mut self, node: &str) {
        let at = self
            .nodes
            .iter()
            .position(|(name, _)| name == node)
            .unwrap();
        let (_, mut daemon) = self.nodes.remove(at);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        let work = self.processes(Some(node));
        let steps = work.iter().filter_map(|process| parent(process));
        let steps: Vec<String> = steps
            .filter(|parent| {
                let name = fs::read_to_string(format!("/proc/{parent}/comm"));
                name.is_ok_and(|name| name.starts_with("slurmstepd"))
            })
            .collect();
        for process in steps.iter().chain(&work) {
            status("kill", &["-9", process]);
        }
        let update = format!("nodename={node}");
        self.says(
            "scontrol",
            &["update", &update, "state=down", "reason=killed"],
        );
    }

    /// Returns the node on which a task is running.
    fn node(&self) -> Option<String> {
        let nodes = ["n1", "n2", "n3"];
        let node = nodes
            .iter()
            .find(|node| !self.processes(Some(node)).is_empty());
        node.map(|node| (*node).to_owned())
    }

    fn log(&self) -> String {
        let logs = fs::read_dir(self.path("log")).unwrap();
        let logs = logs.map(|log| fs::read_to_string(log.unwrap().path()).unwrap_or_default());
        logs.collect::<Vec<_>>().join("\n---\n") + &self.says("squeue", &["-r"])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let nodes = self.nodes.iter_mut().map(|(_, node)| node);
        for daemon in nodes.chain(self.daemons.iter_mut().rev()) {
            // On a signal to end, it reaps its own children.
            status("kill", &[&daemon.id().to_string()]);
            let _ = daemon.wait();
        }
        for process in self.processes(None) {
            status("kill", &["-9", &process]);
        }
    }
}

fn daemon(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn status(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stderr(Stdio::null());
    command.status().unwrap().success()
}

fn parent(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(line.trim().to_owned())
}

/// Runs forty tasks in a job array, as the example does. The first call fails, so that its index is requeued after exit
/// code 4; the last one is never answered, and its node is killed once all others are done.
#[test]
fn forty_tasks_are_done_on_slurm_though_a_node_is_killed() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let answer = |text: &str| Answer::json(&gemini(text));
    let (silence, heard) = Answer::silence();
    let error = Answer::error(400, &serde_json::json!({"error": {"message": "no"}}));
    let good = (0..39).map(|_| answer(GOOD));
    let end = [silence, answer(GOOD)];
    let server = ModelServer::start([error].into_iter().chain(good).chain(end));
    let fleet = Fleet::new(&server);
    let tasks: Vec<Value> = (0..40).map(|task| change(&format!("t{task}"))).collect();
    fleet.tasks(&tasks);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/slurm/task.sh");
    let program = assert_cmd::cargo::cargo_bin!("code-commit")
        .parent()
        .unwrap()
        .display()
        .to_string();
    let words = [
        "--array=0-39%8",
        script.to_str().unwrap(),
        "tasks.jsonl",
        "out",
    ];
    let mut submit = cluster.command("sbatch", &words);
    for (name, value) in fleet.project.command(&[]).get_envs() {
        submit.env(name, value.unwrap_or_default());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    submit.env("PATH", format!("{program}:{path}:/usr/bin:/bin"));
    let submitted = submit.current_dir(fleet.path(".")).output().unwrap();
    assert!(submitted.status.success(), "{submitted:?}");

    assert!(cluster.ends_but(1), "{}", cluster.log());
    // The one that is left may still wait after its requeue.
    let calls = || cluster.left() == 1 && heard.try_recv().is_ok();
    assert!(within_a_minute(calls), "{}", cluster.log());
    let node = cluster.node().unwrap();
    cluster.kill(&node);
    assert!(cluster.ends_but(0), "{}", cluster.log());
    for task in 0..40 {
        assert_eq!(
            fleet.result(&format!("t{task}"))["exit"]["name"],
            "done",
            "{task}"
        );
    }
    // Only failed or killed tasks were run twice.
    assert_eq!(server.requests().len(), 42);
}
