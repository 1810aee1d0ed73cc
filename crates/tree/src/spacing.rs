//! What has to stand between two texts that were not neighbours before, so that the last
//! token of the one and the first of the other stay two.

use std::sync::Arc;

/// A text, and the pairs of bytes that need it between them.
#[derive(Clone, Debug)]
pub struct Spacing {
    text: Vec<u8>,
    /// A bit for each pair.
    needed: Option<Arc<[u64; PAIRS / 64]>>,
}

const PAIRS: usize = 256 * 256;

impl Spacing {
    /// Texts may always be neighbours.
    pub fn none() -> Spacing {
        Spacing { text: Vec::new(), needed: None }
    }

    pub fn new(text: &[u8], needed: impl Fn(u8, u8) -> bool) -> Spacing {
        let mut bits = Box::new([0; PAIRS / 64]);
        for pair in 0..PAIRS {
            if needed((pair >> 8) as u8, pair as u8) {
                bits[pair / 64] |= 1 << (pair % 64);
            }
        }
        Spacing { text: text.to_vec(), needed: Some(Arc::from(bits)) }
    }

    /// A space between words, and between the signs of which operators consist: right for
    /// most languages.
    pub fn usual() -> Spacing {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        let sign = |byte: u8| b"+-*/%<>=&|!:.^~?#$@\\".contains(&byte);
        Spacing::new(b" ", |a, b| word(a) && word(b) || sign(a) && sign(b))
    }

    /// What stands between a text that ends so and one that begins so.
    pub fn between(&self, last: u8, first: u8) -> &[u8] {
        let pair = usize::from(last) << 8 | usize::from(first);
        match &self.needed {
            Some(bits) if bits[pair / 64] >> (pair % 64) & 1 == 1 => &self.text,
            _ => &[],
        }
    }
}
