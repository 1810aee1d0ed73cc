//! `why ls`, `why info` and `why rm`: what recordings there are.

use crate::progress;
use crate::say::{self, besides, sayln};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use why_engine::cpu;
use why_record::cpu::{Cpu, Shown};
use why_record::event::Ended;
use why_record::manifest::{Manifest, Region};
use why_record::store::{self, Recording};
use why_record::summary::{self, Process};
use why_record::{RecordError, Result};

/// List your recordings, the newest last
#[derive(clap::Args)]
pub struct ListArgs {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Say what a recording holds
#[derive(clap::Args)]
pub struct InfoArgs {
    /// The recording [default: the newest finished one]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Delete recordings
#[derive(clap::Args)]
pub struct RemoveArgs {
    #[arg(value_name = "REC", required = true)]
    recordings: Vec<PathBuf>,
}

pub fn list(args: &ListArgs) -> ExitCode {
    end(print_list(args))
}

pub fn info(args: &InfoArgs) -> ExitCode {
    end(print_info(args))
}

pub fn remove(args: &RemoveArgs) -> ExitCode {
    end(args.recordings.iter().try_for_each(|name| {
        let recording = find(Some(name))?;
        let deleting =
            |path: &Path| RecordError::system(format!("cannot delete {}", path.display()));
        std::fs::remove_dir_all(&recording.path).map_err(deleting(&recording.path))?;
        match name.is_file() {
            // It was a packed one.
            true => std::fs::remove_file(name).map_err(deleting(name)),
            false => Ok(()),
        }
    }))
}

/// The recording that is meant. A packed one is unpacked if it has not been yet.
pub fn find(name: Option<&Path>) -> Result<Recording> {
    let bar = match name {
        Some(path) if path.is_file() => progress::of_unknown_bytes("unpacking"),
        _ => return store::find(name),
    };
    let found = store::find_with(name, &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    found
}

/// 0 answered, 1 no answer.
pub fn end(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            besides!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print_list(args: &ListArgs) -> Result<()> {
    let recordings = store::list()?;
    if args.json {
        let answer: Vec<_> = recordings
            .iter()
            .map(|(recording, manifest)| json!({"path": recording.path, "manifest": manifest}))
            .collect();
        say::data(json!({"schema": "why.ls/1", "answer": answer}));
        return Ok(());
    }
    for (recording, manifest) in recordings {
        let name = recording.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sayln!("{name:<20} {:<14} {}", how(&manifest), manifest.command.join(" "));
    }
    Ok(())
}

fn how(manifest: &Manifest) -> String {
    match &manifest.finished {
        Some(finished) => ended(finished.ended),
        None => "cut short".to_owned(),
    }
}

/// From where to where was recorded.
fn borders(region: &Region) -> String {
    let place = |place: &Option<String>, else_with: &str| match place {
        None => else_with.to_owned(),
        Some(text) if text.parse::<u64>().is_ok() => format!("instruction {text}"),
        Some(text) => text.clone(),
    };
    let from = place(&region.from, "the start");
    let until = place(&region.until, "the end");
    match region.until.is_some() && !region.left {
        true => format!("from {from} until the end: {until} was never reached"),
        false => format!("from {from} until {until}"),
    }
}

fn ended(ended: Ended) -> String {
    match ended {
        Ended::Status(status) => format!("status {status}"),
        Ended::Signal(signal) => why_engine::signal_name(signal),
    }
}

fn print_info(args: &InfoArgs) -> Result<()> {
    let recording = find(args.recording.as_deref())?;
    let manifest = recording.manifest()?;
    let processes = summary::processes(&recording)?;
    let kept = recording.files().size()?;
    if args.json {
        say::data(as_json(&recording, &manifest, &processes, kept));
        return Ok(());
    }
    sayln!("recording  {}", recording.path.display());
    sayln!("command    {}", manifest.command.join(" "));
    sayln!("directory  {}", manifest.directory);
    sayln!("cpu        {}", shown_cpu(&manifest.cpu));
    if let Some(seed) = manifest.seed {
        sayln!("seed       {seed}");
    }
    if let Some(region) = &manifest.region {
        sayln!("region     {}", borders(region));
    }
    if let Some(excerpt) = &manifest.excerpt {
        sayln!("excerpt    of {}, for {}", excerpt.of, excerpt.criterion);
        sayln!("           {}", crate::excerpt::in_words(excerpt));
    }
    for note in &manifest.notes {
        sayln!("note       {}", note);
    }
    sayln!("ended      {}", how(&manifest));
    if let Some(stuck) = manifest.finished.as_ref().and_then(|finished| finished.stuck) {
        sayln!("because    {}", crate::record::how_stuck(stuck));
    }
    let total = |number: fn(&Process) -> u64| processes.iter().map(number).sum::<u64>();
    sayln!("executed   {} instructions", total(|p| p.instructions));
    sayln!("log        {} events, {} bytes", total(|p| p.events), total(|p| p.bytes));
    sayln!("files      {} kept, {} bytes", kept.0, kept.1);
    sayln!();
    let known = |pid: i32| processes.iter().any(|process| process.pid == pid);
    for root in processes.iter().filter(|p| p.parent.is_none_or(|parent| !known(parent))) {
        print_tree(root, &processes, 0);
    }
    Ok(())
}

/// What the program was shown, what it needs beyond that, and what of it is missing here.
fn shown_cpu(cpu: &Cpu) -> String {
    let (shown, also) = match cpu.shown {
        Shown::V3 => ("x86-64-v3", "also used"),
        Shown::Native => ("native", "beyond x86-64-v3 it had"),
    };
    let mut text = format!("{shown}, recorded on {}", cpu.vendor);
    let beyond = cpu::beyond_v3(cpu);
    if !beyond.is_empty() {
        text += &format!("; {also} {}", beyond.join(", "));
    }
    let lacking = cpu::lacking(cpu);
    if !lacking.is_empty() {
        text += &format!("; this machine lacks {}", lacking.join(", "));
    }
    text
}

fn print_tree(process: &Process, all: &[Process], depth: usize) {
    let ended = match process.ended {
        Some(how) => ended(how),
        None if process.left => "went on".to_owned(),
        None => "cut short".to_owned(),
    };
    let commands: Vec<String> = process.commands.iter().map(|words| words.join(" ")).collect();
    let commands = if commands.is_empty() { "(forked)".to_owned() } else { commands.join(" => ") };
    let threads = match process.threads {
        0 | 1 => String::new(),
        n => format!(", {n} threads"),
    };
    sayln!("{:indent$}{}  {commands}  [{ended}{threads}]", "", process.pid, indent = 2 * depth);
    for child in all.iter().filter(|child| child.parent == Some(process.pid)) {
        print_tree(child, all, depth + 1);
    }
}

fn as_json(
    recording: &Recording,
    manifest: &Manifest,
    processes: &[Process],
    kept: (u64, u64),
) -> serde_json::Value {
    let processes: Vec<_> = processes
        .iter()
        .map(|process| {
            json!({
                "pid": process.pid,
                "parent": process.parent,
                "commands": process.commands,
                "threads": process.threads,
                "instructions": process.instructions,
                "events": process.events,
                "log_bytes": process.bytes,
                "ended": process.ended.map(ended),
                "left": process.left,
            })
        })
        .collect();
    json!({
        "schema": "why.info/1",
        "recording": recording.path,
        "answer": {
            "manifest": manifest,
            "lacks": cpu::lacking(&manifest.cpu),
            "processes": processes,
            "files": { "kept": kept.0, "bytes": kept.1 },
        },
    })
}
