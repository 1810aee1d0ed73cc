//! `why pack`: a recording as one file, which every command takes in its place.

use crate::say;
use crate::{progress, recordings};
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use why_record::pack::{self, Entry};
use why_record::{RecordError, Result};

/// Pack a recording into one file, to be opened on any machine
#[derive(clap::Args)]
pub struct Args {
    /// The recording [default: the newest finished one]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// The file to write [default: named after the recording, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn main(args: &Args) -> ExitCode {
    recordings::end(pack(args))
}

fn pack(args: &Args) -> Result<()> {
    let recording = recordings::find(args.recording.as_deref())?;
    // What is no recording is not packed.
    recording.manifest()?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => {
            let name = recording.path.canonicalize().unwrap_or(recording.path.clone());
            let name = name.file_name().unwrap_or("recording".as_ref()).to_owned();
            [name.as_os_str(), ".why".as_ref()].into_iter().collect::<std::ffi::OsString>().into()
        }
    };
    let entries = pack::contents(&recording.path)?;
    let mut options = File::options();
    // It holds all that the program saw: it is for its owner to pass it on.
    let created = options.write(true).create_new(true).mode(0o600).open(&output);
    let mut file = created.map_err(RecordError::system(format!(
        "cannot create {}; give another name with -o",
        output.display()
    )))?;
    write(&entries, &mut file, &output).inspect_err(|_| drop(fs::remove_file(&output)))?;
    say::data(output.display());
    Ok(())
}

fn write(entries: &[Entry], file: &mut File, output: &Path) -> Result<()> {
    let bar = progress::of_bytes("packing", entries.iter().map(|entry| entry.size).sum());
    let result = pack::pack(entries, file, output, &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    result
}
