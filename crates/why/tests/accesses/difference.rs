//! Where two lists of accesses part, told so that the cause can be found.

use std::fmt::Write;

use crate::access::Access;

const LINES_BEFORE: usize = 3;
const LINES: usize = 8;

/// Err shows the first difference.
pub fn none(
    one: &str,
    ones: &[Access],
    other: &str,
    others: &[Access],
    disassembled: impl Fn(u64) -> String,
) -> Result<(), String> {
    if ones == others {
        return Ok(());
    }
    let equal = ones.iter().zip(others).take_while(|(one, other)| one == other).count();
    let mut told =
        format!("access {equal} differs, of {} {one} and {} {other}\n", ones.len(), others.len());
    for (name, accesses) in [(one, ones), (other, others)] {
        let _ = writeln!(told, "{name}:");
        let from = equal.saturating_sub(LINES_BEFORE);
        for (index, access) in accesses.iter().enumerate().skip(from).take(LINES) {
            let _ = writeln!(told, "  {index}: {access}  {}", disassembled(access.pc));
        }
    }
    Err(told)
}
