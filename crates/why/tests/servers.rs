//! Servers that are recorded while clients ask them, and ended with Ctrl-C: the server gets
//! the signal, the recording is finished, and replays say again what the server said.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use support::outcome::{Ended, Outcome};
use support::recording;
use support::why::WHY;

mod support;

const PATIENCE: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What the server answers to one request on a connection of its own.
fn ask(port: u16, request: &str, ends: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains(ends) {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(size) => answer.extend(&part[..size]),
        }
    }
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// A server under `why record`, in a directory where its recording and streams are.
struct Server {
    directory: TempDir,
    recorder: Child,
}

impl Server {
    fn start(program: &str, arguments: &[&str]) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let create = |name: &str| File::create(directory.path().join(name)).unwrap();
        let recorder = Command::new(WHY)
            .args(["record", "--hash=200", "--checkpoints=0", "-o", "recording", "--", program])
            .args(arguments)
            .current_dir(directory.path())
            .env("PYTHONUNBUFFERED", "1")
            .stdout(create("stdout"))
            .stderr(create("stderr"))
            .spawn()
            .unwrap();
        Server { directory, recorder }
    }

    fn wait_until_it_answers(&self, port: u16, request: &str, answer: &str) {
        let began = Instant::now();
        while ask(port, request, answer).is_none() {
            assert!(began.elapsed() < PATIENCE, "no answer: {}", self.wrote("stderr"));
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn wrote(&self, stream: &str) -> String {
        let text = std::fs::read(self.directory.path().join(stream)).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Ctrl-C for `why` alone.
    fn interrupt(&mut self) -> ExitStatus {
        let pid = Pid::from_raw(self.recorder.id().cast_signed());
        kill(pid, Signal::SIGINT).unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = self.recorder.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.wrote("stderr"));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether replays end and write the same.
    fn check_replays(&self, ended: ExitStatus) {
        let read = |stream: &str| std::fs::read(self.directory.path().join(stream)).unwrap();
        let (stdout, stderr, files) = (read("stdout"), read("stderr"), BTreeMap::new());
        let recorded = Outcome { ended: Ended::from(ended), stdout, stderr, files };
        recording::replays(&self.directory.path().join("recording"), &recorded).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended unless the test has failed.
        let _ = self.recorder.kill();
        let _ = self.recorder.wait();
    }
}

#[test]
fn redis_with_several_clients() {
    let port = free_port();
    let number = port.to_string();
    let arguments = ["--port", &number, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    let mut server = Server::start("/usr/bin/redis-server", &arguments);
    server.wait_until_it_answers(port, "PING\r\n", "+PONG\r\n");
    thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || {
                for _ in 0..25 {
                    let set = format!("SET mine:{client} {client}\r\nINCR all\r\n");
                    ask(port, &set, "\r\n:").expect("it answers");
                }
            });
        }
    });
    assert_eq!(ask(port, "GET all\r\n", "100\r\n").as_deref(), Some("$3\r\n100\r\n"));
    let ended = server.interrupt();
    assert_eq!(ended.code(), Some(0), "{}", server.wrote("stderr"));
    assert!(server.wrote("stdout").contains("Received SIGINT"), "{}", server.wrote("stdout"));
    server.check_replays(ended);
}

#[test]
fn a_web_server_in_python() {
    let port = free_port();
    let arguments = ["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()];
    let mut server = Server::start("/usr/bin/python3", &arguments);
    server.wait_until_it_answers(port, "HEAD / HTTP/1.0\r\n\r\n", "200 OK");
    thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || {
                let request = format!("GET /none/{client} HTTP/1.0\r\n\r\n");
                let answer = ask(port, &request, "</html>").expect("it answers");
                assert!(answer.contains("404"), "{answer}");
            });
        }
    });
    let ended = server.interrupt();
    assert_eq!(ended.code(), Some(0), "{}", server.wrote("stderr"));
    assert!(server.wrote("stdout").contains("Keyboard interrupt"), "{}", server.wrote("stdout"));
    server.check_replays(ended);
}
