//! What a pool and its workers tell each other: lengths and messages over a pipe.
//!
//! Each message ends with a line feed: whoever passes on what a worker on another machine
//! writes may do so line by line.

use crate::call::Given;
use crate::condition::Condition;
use crate::files::Files;
use crate::seen::Seen;
use postcard::experimental::serialized_size;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

/// What a test is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub target: Target,
    /// The inputs by the names that tests know them by.
    pub names: Vec<PathBuf>,
    pub condition: Option<Condition>,
    /// Bytes of address space.
    pub memory: Option<u64>,
    /// What the workers of one pool have in common.
    pub family: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Target {
    /// It is given the names, and the candidate as standard input.
    Script(Vec<OsString>),
    Command(Vec<OsString>, Given),
}

/// Large files are not copied to be sent.
#[derive(Serialize, Deserialize)]
pub enum ToWorker<'a> {
    Setup(Spec),
    /// Traced, if it is to be told in which function the command crashes.
    Test {
        ticket: u64,
        files: Cow<'a, Files>,
        limit: u64,
        traced: bool,
    },
    Cancel,
}

#[derive(Serialize, Deserialize)]
pub enum FromWorker {
    /// It is there.
    Ready,
    Done {
        ticket: u64,
        seen: Seen,
    },
    Cancelled,
    /// The test could not be made.
    Broken(String),
}

/// As much as a pipe takes at once.
const BUFFER: usize = 1 << 16;

pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let length = serialized_size(message).map_err(io::Error::other)?;
    let mut to = BufWriter::with_capacity(BUFFER, to);
    to.write_all(&(length as u64).to_le_bytes())?;
    let mut to = postcard::to_io(message, to).map_err(io::Error::other)?;
    to.write_all(b"\n")?;
    to.flush()
}

/// Nothing, if the other side is gone.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    // A stranger's length must not make us ask for all memory at once.
    let mut bytes = Vec::new();
    let length = u64::from_le_bytes(length).saturating_add(1);
    if from.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Ok(None);
    }
    postcard::from_bytes(&bytes[..bytes.len() - 1]).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let files = Files(vec![("name".into(), b"two\nlines\0".to_vec())]);
        let mut pipe = Vec::new();
        send(
            &mut pipe,
            &ToWorker::Test { ticket: 7, files: Cow::Borrowed(&files), limit: 9, traced: true },
        )
        .unwrap();
        send(&mut pipe, &ToWorker::Cancel).unwrap();
        // Whoever passes on whole lines passes on whole messages.
        assert_eq!(pipe.last(), Some(&b'\n'));
        let mut rest = pipe.as_slice();
        match receive(&mut rest).unwrap() {
            Some(ToWorker::Test { ticket: 7, files: received, limit: 9, traced: true }) => {
                assert_eq!(*received, files);
            }
            _ => panic!("another message was received"),
        }
        assert!(matches!(receive(&mut rest).unwrap(), Some(ToWorker::Cancel)));
        assert!(receive::<ToWorker>(&mut rest).unwrap().is_none());
    }

    #[test]
    fn what_was_cut_short_is_nothing() {
        let mut pipe = Vec::new();
        send(&mut pipe, &FromWorker::Broken("no room".to_owned())).unwrap();
        for length in 0..pipe.len() {
            assert!(receive::<FromWorker>(&mut &pipe[..length]).unwrap().is_none(), "{length}");
        }
        let endless = [u64::MAX.to_le_bytes().as_slice(), b"text"].concat();
        assert!(receive::<FromWorker>(&mut endless.as_slice()).unwrap().is_none());
    }
}
