//! Accesses of a unit that are always as far from each other as they were once, and not far: where
//! one of them was tells where all were.

use std::sync::Arc;
use why_trace::plan::{Planned, Start};

/// So far one of a family ends behind where that begins.
pub const SPAN: u64 = 1 << 12;

/// All of a unit's.
pub struct Families {
    pub all: Box<[Family]>,
    /// By the numbers of accesses.
    pub members: Arc<[Member]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Where it begins.
    pub start: Start,
    /// One of its accesses.
    one: u16,
}

/// An access: which family is its own, and how far behind where that begins it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub family: u16,
    pub offset: u16,
}

/// Some of the next bytes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub at: Member,
    pub mask: u64,
}

impl Bytes {
    /// The same bytes, those that lie near each other together.
    pub fn together(mut all: Vec<Bytes>) -> Vec<Bytes> {
        all.sort_unstable_by_key(|bytes| (bytes.at.family, bytes.at.offset));
        let mut together: Vec<Bytes> = Vec::new();
        for bytes in all {
            if !together.last_mut().is_some_and(|last| last.takes(bytes)) {
                together.push(bytes);
            }
        }
        together
    }

    /// Takes in others that are not before these, if there is room.
    fn takes(&mut self, Bytes { at, mask }: Bytes) -> bool {
        if at.family != self.at.family {
            return false;
        }
        let distance = u32::from(at.offset - self.at.offset);
        let has_room = distance <= mask.leading_zeros();
        if has_room {
            self.mask |= mask << distance;
        }
        has_room
    }
}

impl Families {
    /// None if not all accesses have a fixed size.
    pub fn of(accesses: &[Planned]) -> Option<Families> {
        let fixed = |access: &Planned| Some((access.fixed_start()?, access.fixed_size()?));
        Some(Families::of_fixed(&accesses.iter().map(fixed).collect::<Option<Vec<_>>>()?))
    }

    /// Of accesses with their sizes.
    pub fn of_fixed(accesses: &[(Start, u16)]) -> Families {
        let mut order: Vec<usize> = (0..accesses.len()).collect();
        order.sort_by_key(|access| {
            let (start, _) = accesses[*access];
            (start.value, start.plus as i64)
        });
        let mut all: Vec<Family> = Vec::new();
        let mut members = vec![Member { family: 0, offset: 0 }; accesses.len()];
        for access in order {
            let (start, size) = accesses[access];
            let place = |family: &Family| {
                let offset = start.plus.wrapping_sub(family.start.plus);
                let is_near = offset <= SPAN && offset + u64::from(size) <= SPAN;
                (family.start.value == start.value && is_near).then_some(offset as u16)
            };
            let offset = match all.last().and_then(place) {
                Some(offset) => offset,
                None => {
                    all.push(Family { start, one: access as u16 });
                    0
                }
            };
            members[access] = Member { family: all.len() as u16 - 1, offset };
        }
        Families { all: all.into(), members: members.into() }
    }

    /// Where each family begins, if accesses are there.
    pub fn bases<'a>(&'a self, starts: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        self.all.iter().map(|family| {
            let one = usize::from(family.one);
            starts[one].wrapping_sub(self.members[one].offset.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_accesses_with_the_same_value_are_a_family() {
        let start = |value: u16, plus: i64| Start { value, plus: plus as u64 };
        let accesses = [
            (start(0, 16), 8),
            (start(5, 0), 4),
            (start(0, -8), 8),
            (start(0, 4080), 8),
            (start(0, 4088), 1),
            (start(5, 4092), 4),
            (start(5, 4093), 4),
        ];
        let families = Families::of_fixed(&accesses);
        let member = |family, offset| Member { family, offset };
        assert_eq!(
            *families.members,
            [
                member(0, 24),
                member(2, 0),
                member(0, 0),
                member(0, 4088),
                member(1, 0),
                member(2, 4092),
                member(3, 0),
            ]
        );
        let (stack, other) = (0x7000_0000_u64, 0x5000_u64);
        let values = [stack, 0, 0, 0, 0, other];
        let at =
            |(start, _): &(Start, u16)| values[usize::from(start.value)].wrapping_add(start.plus);
        let starts: Vec<u64> = accesses.iter().map(at).collect();
        let bases: Vec<u64> = families.bases(&starts).collect();
        assert_eq!(bases, [stack - 8, stack + 4088, other, other + 4093]);
    }

    #[test]
    fn bytes_that_lie_near_each_other_go_together() {
        let bytes = |family, offset, mask| Bytes { at: Member { family, offset }, mask };
        let all = vec![
            bytes(1, 8, 0xff),
            bytes(0, 56, 0xff),
            bytes(0, 0, 0x0f),
            bytes(0, 57, 0xff),
            bytes(1, 4, 0xf0),
            bytes(0, 2, 0xff),
        ];
        let together = [bytes(0, 0, 0xff << 56 | 0x3ff), bytes(0, 57, 0xff), bytes(1, 4, 0xff0)];
        assert_eq!(Bytes::together(all), together);
    }
}
