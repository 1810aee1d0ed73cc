//! How far long work has come; shown only where somebody watches.

use indicatif::{ProgressBar, ProgressStyle};

/// So many bytes are to be gone through.
pub fn of_bytes(what: &'static str, bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes} of {total_bytes}, {eta}");
    ProgressBar::new(bytes).with_style(style.expect("a valid template")).with_message(what)
}

/// One step after the other, each with its own message.
pub fn of_steps() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("a valid template");
    ProgressBar::new_spinner().with_style(style)
}

/// So many of something are to be seen to.
pub fn of_count(what: &'static str, count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}, {eta}");
    ProgressBar::new(count).with_style(style.expect("a valid template")).with_message(what)
}

/// Nobody knows how many bytes there will be.
pub fn of_unknown_bytes(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bytes}, {bytes_per_sec}");
    ProgressBar::new_spinner().with_style(style.expect("a valid template")).with_message(what)
}

/// So many instructions are to be gone through.
pub fn of_instructions(what: &'static str, instructions: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos} of {human_len}, {eta}");
    let style = style.expect("a valid template");
    ProgressBar::new(instructions).with_style(style).with_message(what)
}
