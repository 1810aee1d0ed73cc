//! Busy processes that compete for the cores, until they are dropped.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

pub struct Load(Vec<Child>);

pub fn start(processes: u32) -> io::Result<Load> {
    let mut load = Load(Vec::new());
    for _ in 0..processes {
        load.0.push(busy()?);
    }
    Ok(load)
}

fn busy() -> io::Result<Child> {
    let mut command = Command::new("sh");
    // Ctrl-C is for the soak alone; in a group of its own it does not get it.
    command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).process_group(0);
    // SAFETY: prctl is async-signal-safe, as code between fork and exec must be.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    command.spawn()
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It runs for ever unless someone else has killed it already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
