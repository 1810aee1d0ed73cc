//! The CPU that a recorded program was shown.

use serde::{Deserialize, Serialize};

/// Which CPU a program finds when it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shown {
    /// One of the level x86-64-v3.
    V3,
    /// The one it runs on.
    Native,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    pub shown: Shown,
    /// Who made the CPU that it ran on, as `cpuid` tells.
    pub vendor: String,
    /// What a CPU must have to replay the recording: what the program was shown, and what
    /// it has executed although it was not.
    pub features: Vec<String>,
}
