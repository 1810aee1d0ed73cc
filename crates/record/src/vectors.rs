//! The x87, vector and other extended registers of a thread, in a form that no CPU's layout
//! of them matters to.

use crate::event::bytes;
use serde::{Deserialize, Serialize};

/// The area that `fxsave` fills, up to where what is in it has a meaning.
pub const LEGACY_BYTES: usize = 416;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vectors {
    /// Which of x87 (1) and SSE (2) are not as they are at first.
    pub legacy_in_use: u8,
    /// x87, MXCSR and SSE registers, as `fxsave` lays them out.
    #[serde(with = "bytes")]
    pub legacy: Vec<u8>,
    /// All others that are not as they are at first.
    pub components: Vec<Component>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// The bit that it has in XCR0, 2 and more.
    pub number: u8,
    #[serde(with = "bytes")]
    pub bytes: Vec<u8>,
}
