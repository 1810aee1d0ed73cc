//! `why reduce --backend slurm`, on a real Slurm: the result is that of one job on this machine,
//! whatever dies meanwhile.

#[path = "reduce/cluster.rs"]
mod cluster;
#[path = "reduce/setting.rs"]
#[allow(dead_code)] // All that other tests of `why reduce` need is there, too.
mod setting;

use cluster::Cluster;
use setting::Setting;
use std::fs;
use std::path::Path;
use std::process::Output;

/// Needs both numbers, and writes down on which node it runs and who runs it.
const TEST: &str = "echo $SLURMD_NODENAME $PPID >> ../../../ran
                    grep -q '17 of' in.txt && grep -q 250 in.txt";

/// However busy the machine is, no test is taken for one that hangs.
const PATIENT: [&str; 2] = ["--timeout", "100"];

fn setting(test: &str) -> Setting {
    let lines = (0..300).map(|line| format!("line {line} of some text\n"));
    let setting = Setting::new(&[("in.txt", lines.collect::<String>().as_bytes())]);
    setting.script(test);
    setting
}

fn on_cluster(setting: &Setting, cluster: &Cluster, arguments: &[&str]) -> Output {
    let mut command = setting.command(&["in.txt", "--test", "test.sh", "--backend", "slurm"]);
    let output =
        command.args(PATIENT).args(arguments).env("SLURM_CONF", cluster.configuration()).output();
    let left: Vec<_> = fs::read_dir(setting.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
    output.unwrap()
}

/// Reduces with three workers and with one here, and expects the same of both.
fn same_as_here(test: &str) -> Setting {
    let cluster = Cluster::start();
    let setting = setting(test);
    let conf = cluster.path("").display().to_string();
    setting.script(&test.replace("CLUSTER", &conf));
    let output = on_cluster(&setting, &cluster, &["-j", "3", "--trace", "there"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = setting.read("in.reduced.txt");
    fs::rename(setting.path("ran"), setting.path("ran-there")).unwrap();
    setting.script(TEST);
    setting.answer(&[&["in.txt", "--test", "test.sh", "--trace", "here"][..], &PATIENT].concat());
    assert_eq!(String::from_utf8(result), String::from_utf8(setting.read("in.reduced.txt")));
    let trace = |name| String::from_utf8(setting.read(name)).unwrap();
    assert_eq!(trace("there"), trace("here"));
    setting
}

fn ran(setting: &Setting) -> Vec<(String, String)> {
    let ran = String::from_utf8(setting.read("ran-there")).unwrap();
    let runs = ran.lines().map(|line| line.split_once(' ').expect("a node and a worker"));
    runs.map(|(node, worker)| (node.to_owned(), worker.to_owned())).collect()
}

#[test]
fn all_nodes_make_tests() {
    let setting = same_as_here(TEST);
    for node in ["n1", "n2"] {
        assert!(ran(&setting).iter().any(|(on, _)| on == node), "{node} made no test");
    }
}

/// What a test does once, when some have been made: the last command must end with its worker.
fn once(condition: &str, deed: &str) -> String {
    let (first, last) = TEST.split_once('\n').unwrap();
    let enough = "[ $(wc -l < ../../../ran) -ge 20 ]";
    format!("{first}\n{enough} && {condition} && mkdir ../../../done 2>&- && {{ {deed}; }}\n{last}")
}

#[test]
fn a_worker_that_dies_is_replaced() {
    let deed = "setsid sleep 1000 & echo $! > ../../../left; echo $PPID > ../../../victim;
                kill -9 $PPID; exec sleep 1000";
    let setting = same_as_here(&once("true", deed));
    let victim = String::from_utf8(setting.read("victim")).unwrap();
    let last = ran(&setting).iter().rposition(|(_, worker)| worker == victim.trim()).unwrap();
    assert!(ran(&setting).len() > last + 3, "tests were made after it died");
    let left = String::from_utf8(setting.read("left")).unwrap();
    assert!(!Path::new("/proc").join(left.trim()).exists(), "{left} is still there");
}

#[test]
fn a_node_that_dies_is_done_without() {
    let daemons = "$(cat CLUSTER/slurmd-n2.pid) $(cut -d' ' -f4 /proc/$PPID/stat)";
    let deed = format!("kill -9 {daemons} $PPID; exec sleep 1000");
    let setting = same_as_here(&once("[ $SLURMD_NODENAME = n2 ]", &deed));
    assert!(setting.path("done").exists());
}

#[test]
fn an_allocation_that_is_lost_is_told() {
    let cluster = Cluster::start();
    let setting = setting(&format!(
        "{}; [ $(wc -l < ../../../ran) -ge 40 ] && scancel $SLURM_JOB_ID; {}",
        TEST.lines().next().unwrap(),
        TEST.lines().last().unwrap()
    ));
    let output = on_cluster(&setting, &cluster, &["-j", "2"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("why: Slurm has ended the allocation (job 1); the best result so far is in in.reduced.txt"), "{said}");
    let best = String::from_utf8(setting.read("in.reduced.txt")).unwrap();
    assert!(best.contains("17 of") && best.contains("250") && best.len() < 1000, "{best}");

    // The rest is made elsewhere.
    fs::remove_file(setting.path("ran")).unwrap();
    setting.script(TEST);
    setting.answer(&[&["in.txt", "--test", "test.sh", "--resume"][..], &PATIENT].concat());
    assert_eq!(setting.read("in.reduced.txt"), b"17 of250");
}

#[test]
fn what_slurm_refuses_is_said_in_a_line() {
    let setting = setting(TEST);
    let cluster = Cluster::start();
    let conf = cluster.configuration().display().to_string();
    let check = |variables: &[(&str, &str)], words: &str| {
        let mut command = setting.command(&["in.txt", "--test", "test.sh", "--backend", "slurm"]);
        command.env("SLURM_CONF", &conf).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!setting.path("in.reduced.txt").exists() && !setting.path("ran").exists());
    };
    check(&[("PATH", "/nowhere")], "cannot start salloc");
    check(&[("SALLOC_PARTITION", "none")], "Invalid partition name specified; sinfo shows");
}
