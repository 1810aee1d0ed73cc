//! The command `why`: parses the command line and hands over to one module per
//! subcommand. It never touches ptrace itself.

// What is answered goes through `say`.
#![deny(clippy::print_stdout)]

mod accesses;
mod chop;
mod criterion;
mod doctor;
mod excerpt;
mod executions;
mod fork;
mod images;
mod isolate;
mod lineage;
mod memory;
mod origins;
mod pack;
mod print;
mod programs;
mod progress;
mod questions;
mod record;
mod recordings;
mod reduce;
mod region;
mod replay;
mod reports;
mod run;
mod say;
mod slice;
mod trial;
mod tries;
mod written;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// For commands that run a program: it is `why` that failed, not the program.
const FAILED: u8 = 125;
/// For all others.
const MISUSED: u8 = 2;

/// Says why a native Linux program fails.
#[derive(Parser)]
#[command(name = "why", version, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Record(record::Args),
    Replay(replay::Args),
    Print(print::Args),
    Slice(slice::Args),
    Chop(chop::Args),
    Pack(pack::Args),
    Ls(recordings::ListArgs),
    Info(recordings::InfoArgs),
    Rm(recordings::RemoveArgs),
    Reduce(reduce::Args),
    Isolate(isolate::Args),
    Doctor(doctor::Args),
    /// Make tests for another `why`
    #[command(name = "trial-worker", hide = true)]
    TrialWorker,
}

/// What these options are for says the heading under which they stand.
const WITH_AUTO: &str = "With --auto";

/// What options need is known only where all of them are.
fn cli() -> clap::Command {
    let needs_auto = |arg: clap::Arg| match arg.get_help_heading() {
        Some(WITH_AUTO) => arg.requires("auto"),
        _ => arg,
    };
    Cli::command().mut_subcommand("chop", |chop| chop.mut_args(needs_auto))
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut cli = cli();
    let matches = cli.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut cli))
}

#[global_allocator]
static MEMORY: memory::OrEnd = memory::OrEnd;

fn main() -> ExitCode {
    let first = first_word();
    memory::prepare(first.as_deref(), if runs(first.as_deref()) { FAILED } else { 1 });
    say::end(command())
}

fn first_word() -> Option<String> {
    std::env::args_os().nth(1).map(|word| word.to_string_lossy().into_owned())
}

/// Whether a command runs a program, which has a status of its own.
fn runs(command: Option<&str>) -> bool {
    matches!(command, Some("run" | "record" | "replay"))
}

fn command() -> ExitCode {
    match parse(std::env::args_os()) {
        Ok(Cli { command: Command::Run(args) }) => run::main(args),
        Ok(Cli { command: Command::Record(args) }) => record::main(args),
        Ok(Cli { command: Command::Replay(args) }) => replay::main(args),
        Ok(Cli { command: Command::Print(args) }) => print::main(&args),
        Ok(Cli { command: Command::Slice(args) }) => slice::main(&args),
        Ok(Cli { command: Command::Chop(args) }) => chop::main(&args),
        Ok(Cli { command: Command::Pack(args) }) => pack::main(&args),
        Ok(Cli { command: Command::Ls(args) }) => recordings::list(&args),
        Ok(Cli { command: Command::Info(args) }) => recordings::info(&args),
        Ok(Cli { command: Command::Rm(args) }) => recordings::remove(&args),
        Ok(Cli { command: Command::Reduce(args) }) => reduce::main(&args),
        Ok(Cli { command: Command::Isolate(args) }) => isolate::main(&args),
        Ok(Cli { command: Command::Doctor(args) }) => doctor::main(args),
        Ok(Cli { command: Command::TrialWorker }) => trial::worker(),
        Err(error) => misused(&error),
    }
}

/// Help and version go where clap puts them; anything else is one line.
fn misused(error: &clap::Error) -> ExitCode {
    if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
        error.exit();
    }
    let first = first_word();
    let words: Vec<OsString> = std::env::args_os().collect();
    say::besides!("{}", one_line(error, &words));
    ExitCode::from(if runs(first.as_deref()) { FAILED } else { MISUSED })
}

/// What is wrong, without clap's tips and usage, and what to do.
fn one_line(error: &clap::Error, words: &[OsString]) -> String {
    let command = words.get(1).and_then(|word| word.to_str());
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command was given; `why --help` lists them".to_owned();
    }
    // A command that is to be run may be anything.
    let own = words.iter().take_while(|word| *word != "--");
    let foreign = own.filter(|word| word.to_str().is_none()).map(|word| word.display());
    if let (ErrorKind::InvalidUtf8, Some(word)) = (error.kind(), foreign.into_iter().next()) {
        return format!(
            "the argument {word} is not UTF-8, as it has to be here; of a recording, give another \
             name, such as that of a link to it"
        );
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let words = text.lines().take_while(|line| !line.is_empty()).flat_map(str::split_whitespace);
    let what: Vec<&str> = words.collect();
    let what = what.join(" ");
    let unknown = error
        .get(ContextKind::InvalidArg)
        .filter(|_| error.kind() == ErrorKind::UnknownArgument)
        .map(ToString::to_string);
    match (command, unknown) {
        (Some(command @ ("run" | "record")), Some(program)) if !program.starts_with('-') => {
            format!("{what}; a program to {command} goes behind `--`: why {command} -- {program} …")
        }
        (Some(command), _) if is_command(command) => {
            format!("{what}; `why {command} --help` tells what is possible")
        }
        _ => format!("{what}; `why --help` tells what is possible"),
    }
}

fn is_command(word: &str) -> bool {
    Cli::command().get_subcommands().any(|command| command.get_name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn said(words: &[&str]) -> String {
        said_of(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn said_of(words: &[OsString]) -> String {
        let parsed = parse(words.iter().cloned());
        one_line(&parsed.err().expect("a misuse"), words)
    }

    #[test]
    fn misuse_is_one_line() {
        for words in [
            &["why"][..],
            &["why", "no-such-command"],
            &["why", "run"],
            &["why", "run", "--"],
            &["why", "run", "--tool", "none"],
            &["why", "run", "--tool=other", "--", "true"],
            &["why", "run", "--other", "--", "true"],
        ] {
            let line = said(words);
            assert!(!line.contains('\n') && line.contains("--help"), "{words:?}: {line:?}");
        }
    }

    #[test]
    fn what_is_not_utf_8_is_named() {
        let foreign = OsString::from_vec(b"caf\xe9".to_vec());
        let said = said_of(&["why".into(), "slice".into(), foreign, "exit".into()]);
        assert!(said.starts_with("the argument caf\u{fffd} is not UTF-8"), "{said}");
    }

    #[test]
    fn a_forgotten_separator_is_named() {
        assert!(said(&["why", "record", "make"]).contains("why record -- make"));
    }

    #[test]
    fn what_is_possible_is_named() {
        assert!(said(&["why", "run", "--tool=other", "--", "true"]).contains("none, count, trace"));
    }
}
