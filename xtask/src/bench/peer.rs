//! The other side of a program that serves: what asks it, and then ends it.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The commands that are run one after the other once the program accepts connections.
#[derive(Clone)]
pub struct Peer {
    pub address: SocketAddr,
    pub commands: Vec<Vec<OsString>>,
}

impl Peer {
    /// Does all of it, or says what went wrong.
    pub fn ask(&self, directory: &Path) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(self.address).is_err() {
            if Instant::now() > deadline {
                return Err("it never accepted a connection".to_owned());
            }
            thread::sleep(Duration::from_millis(2));
        }
        for words in &self.commands {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).current_dir(directory);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match command.status() {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(format!("{command:?} failed: {status}")),
                Err(error) => return Err(format!("{command:?}: {error}")),
            }
        }
        Ok(())
    }
}

/// A port of the loopback interface that nobody uses at the moment.
pub fn free_port() -> std::io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}
