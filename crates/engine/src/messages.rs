//! What the supervisor tells the process that the user started.

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The first process ended; what is known then.
    Ended(Report),
    /// The first process was stopped by a signal, as by Ctrl-Z.
    Stopped,
    /// The engine cannot go on: exit status and message.
    Failed { status: u8, message: String },
}

/// Sends a message; nobody may be there any more to receive it.
pub fn send(stream: &UnixStream, message: &Message) {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    line.push(b'\n');
    let mut stream = stream;
    let _ = stream.write_all(&line);
}

pub fn receive(stream: UnixStream) -> impl Iterator<Item = Message> {
    BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str(&line).ok())
}
