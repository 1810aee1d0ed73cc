//! Chores of development: `cargo xtask --help`. Nothing here is part of `why`.

mod bench;
mod crashes;
mod fixtures;
mod machine;
mod process;
mod races;
mod scaling;
mod soak;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of development
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Args),
    Soak(soak::Args),
    Fixtures(fixtures::Args),
    Races(races::Args),
    Scaling(scaling::Args),
    Crashes(crashes::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Bench(args) => bench::main(args),
        Command::Soak(args) => soak::main(args),
        Command::Fixtures(args) => fixtures::main(args),
        Command::Races(args) => races::main(args),
        Command::Scaling(args) => scaling::main(args),
        Command::Crashes(args) => crashes::main(args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::from(2)
    })
}
