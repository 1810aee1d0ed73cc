//! `why run`: runs a program under the engine.

/// Run a program under the engine, unchanged
#[derive(clap::Args)]
pub struct Args {
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

pub fn main(_args: Args) -> std::process::ExitCode {
    std::process::ExitCode::from(125)
}
