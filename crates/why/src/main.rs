//! The command `why`: parses the command line and hands over to one module per
//! subcommand. It never touches ptrace itself.

mod doctor;
mod run;

use clap::{Parser, Subcommand};

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
    Doctor(doctor::Args),
}

fn main() -> std::process::ExitCode {
    match Cli::parse().command {
        Command::Run(args) => run::main(args),
        Command::Doctor(args) => doctor::main(args),
    }
}
