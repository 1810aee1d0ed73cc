//! Named masks for what differs from run to run and means nothing: each turns
//! it into a fixed word before outcomes are compared.

use regex::bytes::{NoExpand, Regex};

#[derive(Clone, Copy, Debug)]
pub struct Mask {
    pattern: &'static str,
    word: &'static str,
}

/// `24/Dec/2025:10:11:12 +0000`, `2025/12/24 10:11:12`, `24 Dec 2025 10:11:12.345`,
/// `Wed, 24 Dec 2025 10:11:12 GMT`.
pub const DATE: Mask = Mask {
    pattern: r"(\w{3}, )?\d{1,4}[/ -](\w{3}|\d\d)[/ -]\d{2,4}[: ]\d\d:\d\d:\d\d(\.\d+)?( \+0000| GMT)?",
    word: "{date}",
};

/// The process that wrote a line of a server's log: `1234:M`, `1234#0:`.
pub const LOG_PID: Mask = Mask { pattern: r"\b\d+(:[MCXS] |#\d+:)", word: "{pid}" };

/// A shell tells of the death of a job: `line 26: 1234 Segmentation fault`.
pub const SHELL_JOB_PID: Mask = Mask { pattern: r"line \d+: +\d+ ", word: "{line and pid} " };

/// A rate or a latency in a benchmark's table: any number with a fraction.
pub const FRACTION: Mask = Mask { pattern: r"\b\d+\.\d+\b", word: "{number}" };

pub fn apply(masks: &[Mask], text: Vec<u8>) -> Vec<u8> {
    masks.iter().fold(text, |text, mask| {
        let pattern = Regex::new(mask.pattern).expect("the pattern of a mask is valid");
        pattern.replace_all(&text, NoExpand(mask.word.as_bytes())).into_owned()
    })
}
