//! `why doctor`: tries, for real, what this machine allows.

/// Try what this machine allows, and say what each finding means
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_args: Args) -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
