//! Between the area that the kernel copies a thread's extended registers to, laid out as
//! this machine's CPU does, and the form in which they are recorded.

use std::arch::x86_64::__cpuid_count;
use why_record::vectors::{Component, LEGACY_BYTES, Vectors};

/// Where the area says which registers are not as they are at first.
const IN_USE: usize = 512;
/// Where that header ends, and what has no fixed place begins.
const HEADER_END: usize = 576;

/// The protection of memory by keys: the kernel gives it to programs that never asked.
const PKRU: u64 = 1 << 9;

/// Which registers in the area are not as they are at first, as bits of XCR0.
pub fn in_use(area: &[u8]) -> u64 {
    let word = area.get(IN_USE..IN_USE + 8);
    word.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight")))
}

/// The registers in this machine's area.
pub fn recorded(area: &[u8], limited: bool) -> Vectors {
    let mut in_use = in_use(area);
    if limited {
        in_use &= !PKRU;
    }
    let components = (2..63).filter(|number| in_use >> number & 1 == 1).filter_map(|number| {
        let place = place(number, area.len())?;
        Some(Component { number, bytes: area[place].to_vec() })
    });
    Vectors {
        legacy_in_use: (in_use & 3) as u8,
        legacy: area[..LEGACY_BYTES].to_vec(),
        components: components.collect(),
    }
}

/// An area as large as this machine's, with these registers; what is wrong if that cannot be.
pub fn area(vectors: &Vectors, size: usize) -> Result<Vec<u8>, String> {
    let mut area = vec![0; size];
    if vectors.legacy.len() != LEGACY_BYTES || size < HEADER_END || vectors.legacy_in_use > 3 {
        return Err("vector registers of a wrong size are told".to_owned());
    }
    area[..LEGACY_BYTES].copy_from_slice(&vectors.legacy);
    let mut in_use = u64::from(vectors.legacy_in_use);
    for Component { number, bytes } in &vectors.components {
        let place = place(*number, size).filter(|place| place.len() == bytes.len());
        let Some(place) = place.filter(|_| in_use >> number & 1 == 0) else {
            return Err(format!("extended registers {number} are not those of this CPU"));
        };
        area[place].copy_from_slice(bytes);
        in_use |= 1 << number;
    }
    area[IN_USE..IN_USE + 8].copy_from_slice(&in_use.to_le_bytes());
    Ok(area)
}

/// Where registers are in an area so large.
fn place(number: u8, size: usize) -> Option<std::ops::Range<usize>> {
    if !(2..63).contains(&number) {
        return None;
    }
    let layout = __cpuid_count(0xd, number.into());
    let (start, length) = (layout.ebx as usize, layout.eax as usize);
    (length > 0 && start >= HEADER_END && start + length <= size).then(|| start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than this machine's registers take.
    const SIZE: usize = 16 << 10;

    fn some_area() -> Vec<u8> {
        let mut area: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
        area[LEGACY_BYTES..HEADER_END].fill(0);
        area[IN_USE] = 7;
        area
    }

    #[test]
    fn what_is_recorded_comes_back() {
        let before = some_area();
        let vectors = recorded(&before, true);
        assert_eq!((vectors.legacy_in_use, vectors.components.len()), (3, 1));
        let after = area(&vectors, SIZE).unwrap();
        assert_eq!(in_use(&after), 7);
        assert_eq!(after[..832], before[..832]);
        assert!(after[832..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_a_stranger_tells_is_checked() {
        let good = recorded(&some_area(), true);
        let upper = good.components[0].clone();
        let with = |components: Vec<Component>| area(&Vectors { components, ..good.clone() }, SIZE);
        assert!(with(vec![upper.clone()]).is_ok());
        for number in [0, 1, 3, 40, 63, 64, 255] {
            assert!(with(vec![Component { number, ..upper.clone() }]).is_err(), "{number}");
        }
        assert!(with(vec![upper.clone(), upper.clone()]).is_err());
        assert!(with(vec![Component { bytes: vec![0; 255], ..upper.clone() }]).is_err());
        assert!(area(&Vectors { legacy: vec![0; 415], ..good.clone() }, SIZE).is_err());
        assert!(area(&Vectors { legacy_in_use: 4, ..good.clone() }, SIZE).is_err());
        assert!(area(&good, 575).is_err() && area(&good, 600).is_err());
    }
}
