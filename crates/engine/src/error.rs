//! What stops the engine itself, as opposed to the program it runs.

/// Each message is one line: what was tried, what happened, what to do.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program could not be started; the shell's status for it.
    #[error("{message}")]
    CannotStart { status: u8, message: String },
    #[error(
        "the program made system call {number} ({name}) at {pc:#x}, which the engine does not \
         know; please report it"
    )]
    UnknownCall { number: u64, name: String, pc: u64 },
    #[error(
        "the program reached the instruction {text} at {pc:#x} ({bytes}), which the engine does \
         not translate; please report it"
    )]
    UnknownInstruction { text: String, bytes: String, pc: u64 },
    #[error("{0}")]
    Recording(#[from] why_record::RecordError),
    #[error("the replay differs from the recording at event {event}: {how}; please report it")]
    Diverged { event: u64, how: String },
    #[error(
        "the recording cannot be replayed here: the program needs {features}, which this \
         machine's CPU lacks; replay it on a machine that has it, or record it anew"
    )]
    CpuLacks { features: String },
    #[error("the recording was cut short: it ends after event {event}, and so does the replay")]
    CutShort { event: u64 },
    #[error("the recording has no position {position}: {how}")]
    NoMoment { position: String, how: String },
    #[error("memory has run out; {}", why_record::remedy::LessMemory)]
    NoMemory,
    #[error("{what}: {source}; {}", remedy(source))]
    System { what: String, source: std::io::Error },
}

fn remedy(error: &std::io::Error) -> String {
    let doctor = || "`why doctor` tells what this machine allows".to_owned();
    why_record::remedy::known(error).unwrap_or_else(doctor)
}

impl EngineError {
    pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> EngineError {
        let what = what.into();
        |source| EngineError::System { what, source }
    }

    /// There is no room for what is to be recorded.
    pub fn is_full(&self) -> bool {
        matches!(self, EngineError::Recording(error) if error.is_full())
    }

    /// The exit status of `why run`.
    pub fn status(&self) -> u8 {
        match self {
            EngineError::CannotStart { status, .. } => *status,
            _ => 125,
        }
    }
}

pub type Result<T> = std::result::Result<T, EngineError>;

/// Why work on a thread ended early.
#[derive(Debug)]
pub enum Halt {
    /// The thread was killed; its end will be reported.
    Gone,
    Engine(EngineError),
}

impl From<crate::ptrace::Gone> for Halt {
    fn from(_: crate::ptrace::Gone) -> Halt {
        Halt::Gone
    }
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Halt {
        Halt::Engine(error)
    }
}
