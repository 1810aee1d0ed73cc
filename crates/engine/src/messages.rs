//! What the supervisor tells the process that the user started.

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The first process ended; what is known then.
    Ended(Box<Report>),
    /// The first process was stopped by this signal, as by Ctrl-Z.
    Stopped(i32),
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

/// Messages as they come in.
pub struct Messages(BufReader<UnixStream>);

impl Messages {
    pub fn new(stream: UnixStream) -> Messages {
        Messages(BufReader::new(stream))
    }

    /// Readable when there is more to read.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }

    /// Whether more was read already than was received.
    pub fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    /// The next message; None when the supervisor has ended.
    pub fn receive(&mut self) -> Option<Message> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}
