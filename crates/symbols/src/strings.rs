//! Text: C strings, and the string types of C++ and Rust.

use crate::types::{Record, Shape};
use crate::units::{DieRef, Units};
use crate::{Memory, Value};
use gimli::constants as dw;

/// Longer text is shortened.
const MOST_BYTES: usize = 100;

/// Whether values of the type are characters of C, so that many of them are a text.
pub fn is_character(units: &Units, type_: &DieRef) -> bool {
    matches!(
        units.shape(type_),
        Shape::Number { encoding: dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char, size: 1, .. }
    )
}

/// The text at an address, up to its zero byte.
pub fn c_string(memory: &dyn Memory, at: u64) -> Option<String> {
    let mut bytes = vec![0; MOST_BYTES + 1];
    let got = memory.read(at, &mut bytes);
    bytes.truncate(got);
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => Some(quoted(&bytes[..end], false)),
        None if got > MOST_BYTES => Some(quoted(&bytes[..MOST_BYTES], true)),
        None => None,
    }
}

/// The text in an array of characters, up to its zero byte; or that in the first part of a larger one.
/// Where nothing legible is in front of a zero byte it is no text: then all is told, without the zero
/// bytes at its end.
pub fn array_text(bytes: &[u8], goes_on: bool) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = !text.is_empty() && std::str::from_utf8(text).is_ok();
    let shown = if is_text { text.len() } else { end }.min(MOST_BYTES);
    quoted(&bytes[..shown], shown < end || goes_on)
}

pub fn quoted(bytes: &[u8], shortened: bool) -> String {
    let text: String = bytes
        .utf8_chunks()
        .flat_map(|chunk| {
            let valid = chunk.valid().chars().map(|c| escaped(c, '"'));
            let invalid = chunk.invalid().iter().map(|byte| format!("\\{byte:03o}"));
            valid.chain(invalid).collect::<Vec<_>>()
        })
        .collect();
    format!("\"{text}\"{}", if shortened { "…" } else { "" })
}

pub fn escaped(c: char, quote: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if c == quote => format!("\\{c}"),
        c if c.is_control() => format!("\\{:03o}", c as u32),
        c => c.to_string(),
    }
}

/// The text of a record that is a string of C++ or Rust.
pub fn of_record(memory: &dyn Memory, value: &Value, record: &Record) -> Option<String> {
    let (data, length) = match record.name.as_str() {
        "&str" | "&mut str" => {
            (value.member_named(memory, "data_ptr")?, value.member_named(memory, "length")?)
        }
        "String" => {
            let vector = value.member_named(memory, "vec")?;
            let length = vector.member_named(memory, "len")?;
            (innermost_pointer(memory, vector.member_named(memory, "buf")?)?, length)
        }
        name if name.starts_with("basic_string<char,") => {
            let data = value.member_named(memory, "_M_dataplus")?.member_named(memory, "_M_p")?;
            (data, value.member_named(memory, "_M_string_length")?)
        }
        _ => return None,
    };
    let at = data.integer(memory, 8, false).ok()? as u64;
    let length = length.integer(memory, 8, false).ok()? as u64;
    let shown = length.min(MOST_BYTES as u64) as usize;
    let bytes = if shown == 0 { Vec::new() } else { memory.read_exact(at, shown)? };
    Some(quoted(&bytes, length > shown as u64))
}

/// The pointer that Rust has wrapped several times.
fn innermost_pointer(memory: &dyn Memory, value: Value) -> Option<Value> {
    const MOST_LAYERS: usize = 8;
    let mut value = value;
    for _ in 0..MOST_LAYERS {
        if let Shape::Pointer { .. } = value.shape() {
            return Some(value);
        }
        value =
            ["inner", "ptr", "pointer"].iter().find_map(|name| value.member_named(memory, name))?;
    }
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_is_quoted_as_in_c() {
        assert_eq!(super::quoted(b"a\"b\n\x01\xff", false), "\"a\\\"b\\n\\001\\377\"");
        assert_eq!(super::array_text(b"hi\0\0", false), "\"hi\"");
        assert_eq!(super::array_text(b"\0xy\0", false), "\"\\000xy\"");
        assert_eq!(super::array_text(&[b'x'; 200], false).chars().count(), 103);
        assert_eq!(super::array_text(&[0; 200], true), "\"\"…");
    }
}
