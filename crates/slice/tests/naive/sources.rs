//! Ways to put together what bytes are made from.

use super::machine::Value;
use super::shadow::Sources;

/// What all bytes of a value are made from.
pub fn all(value: &Value) -> Sources {
    Sources::all(value)
}

/// What a constant is made from.
pub fn nothing() -> Sources {
    Sources::default()
}

/// Each byte of two operands with the other's.
pub fn bytewise(one: &Value, other: &Value) -> Value {
    one.iter().zip(other).map(|(a, b)| Sources::all([a, b])).collect()
}

/// A value with more bytes above it.
pub fn extended(mut value: Value, size: usize, above: &Sources) -> Value {
    value.resize(size, above.clone());
    value
}
