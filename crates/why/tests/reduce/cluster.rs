//! A Slurm cluster of two nodes with two CPUs each, all of it on this machine's loopback, in a
//! directory of its own, by daemons that end with the test.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, getuid};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Cluster {
    directory: TempDir,
    /// In the order in which they end.
    daemons: Vec<Child>,
}

impl Cluster {
    pub fn start() -> Cluster {
        let directory = tempfile::tempdir().unwrap();
        let mut cluster = Cluster { directory, daemons: Vec::new() };
        fs::create_dir(cluster.path("state")).unwrap();
        fs::write(cluster.path("key"), [b'k'; 64]).unwrap();
        fs::set_permissions(cluster.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(cluster.configuration(), cluster.settings()).unwrap();
        let file =
            |option: &str, name: &str| format!("--{option}={}", cluster.path(name).display());
        let munged = [
            file("socket", "munge.socket"),
            file("key-file", "key"),
            file("log-file", "munged.log"),
            file("pid-file", "munged.pid"),
            file("seed-file", "munged.seed"),
        ];
        cluster.daemon("munged", &["--foreground", "--force"], &munged);
        cluster.wait_for("munge.socket", |cluster| cluster.path("munge.socket").exists());
        let configuration = cluster.configuration().display().to_string();
        cluster.daemon("slurmctld", &["-D", "-f", &configuration], &[]);
        for node in ["n1", "n2"] {
            cluster.daemon("slurmd", &["-D", "-N", node, "-f", &configuration], &[]);
        }
        cluster.wait_for("two idle nodes", |cluster| {
            let mut sinfo = Command::new("sinfo");
            sinfo.args(["--noheader", "--Node", "--format=%T"]);
            let output = sinfo.env("SLURM_CONF", cluster.configuration()).output();
            String::from_utf8(output.unwrap().stdout).unwrap() == "idle\nidle\n"
        });
        cluster
    }

    /// What SLURM_CONF has to name.
    pub fn configuration(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn settings(&self) -> String {
        let directory = self.directory.path().display();
        let user = User::from_uid(getuid()).unwrap().expect("the user has a name").name;
        let [control, first, second] = free_ports();
        format!(
            "ClusterName=why
             SlurmctldHost=localhost(127.0.0.1)
             SlurmUser={user}
             SlurmdUser={user}
             AuthInfo=socket={directory}/munge.socket
             SlurmctldPort={control}
             SlurmctldPidFile={directory}/slurmctld.pid
             SlurmctldLogFile={directory}/slurmctld.log
             StateSaveLocation={directory}/state
             SlurmdPidFile={directory}/slurmd-%n.pid
             SlurmdLogFile={directory}/slurmd-%n.log
             SlurmdSpoolDir={directory}/spool-%n
             ProctrackType=proctrack/linuxproc
             TaskPlugin=task/none
             SelectType=select/cons_tres
             SelectTypeParameters=CR_CPU
             MpiDefault=none
             ReturnToService=2
             KillWait=2
             SlurmdTimeout=10
             NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={first} CPUs=2
             NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={second} CPUs=2
             PartitionName=all Nodes=ALL Default=YES State=UP\n"
        )
        .replace("\n             ", "\n")
    }

    fn daemon(&mut self, name: &str, words: &[&str], more: &[String]) {
        // Servers live in sbin, which is not on an ordinary user's path.
        let program = Path::new("/usr/sbin").join(name);
        let mut command = Command::new(&program);
        command.args(words).args(more).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(self.path(&format!("{name}.said"))).unwrap());
        // SAFETY: what runs between fork and exec only makes a system call.
        unsafe {
            command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?));
        }
        let child = command.spawn();
        let child =
            child.unwrap_or_else(|error| panic!("{}: {error}; run ./setup", program.display()));
        self.daemons.insert(0, child);
    }

    fn wait_for(&self, what: &str, there: impl Fn(&Cluster) -> bool) {
        let patience = Instant::now() + Duration::from_secs(60);
        while !there(self) {
            assert!(Instant::now() < patience, "no {what}: {}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let files =
            fs::read_dir(self.directory.path()).unwrap().flatten().map(|entry| entry.path());
        let logs =
            files.filter(|path| path.extension().is_some_and(|end| end == "log" || end == "said"));
        logs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = kill(Pid::from_raw(daemon.id() as i32), Signal::SIGTERM);
            let patience = Instant::now() + Duration::from_secs(10);
            while let (Ok(None), true) = (daemon.try_wait(), Instant::now() < patience) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn free_ports<const N: usize>() -> [u16; N] {
    // All are held at once, so that they differ.
    let listeners: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
