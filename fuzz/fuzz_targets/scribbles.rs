//! What a program can write to while it is recorded or replayed: its log of calls, and the slots
//! that count its instructions.
#![no_main]

use why_engine::hostile::{allowances, records};

libfuzzer_sys::fuzz_target!(|input: (u64, Vec<i64>, Vec<u8>)| {
    let (left, slots, log) = input;
    let mut end = 0;
    for record in records(&log) {
        assert!(end < record.bytes.start && record.bytes.end <= log.len());
        end = record.bytes.end;
    }
    let used = std::array::from_fn(|index| slots.get(index).copied().unwrap_or(0));
    let given: u128 = allowances(left, &used).iter().map(|&share| u128::from(share)).sum();
    assert!(given <= u128::from(left));
});
