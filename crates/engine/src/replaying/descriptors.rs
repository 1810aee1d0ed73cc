//! What descriptors are open, as far as calls tell.

use rustc_hash::FxHashMap;

/// The number of an opened file, which descriptors that are copies of each other share.
pub type Opened = usize;

#[derive(Clone, Copy)]
struct Descriptor {
    of: Opened,
    /// It is closed when the process executes another program.
    closes: bool,
}

#[derive(Clone, Default)]
pub struct Descriptors(FxHashMap<i32, Descriptor>);

impl Descriptors {
    pub fn get(&self, number: i32) -> Option<Opened> {
        self.0.get(&number).map(|descriptor| descriptor.of)
    }

    pub fn open(&mut self, number: i32, of: Opened, closes: bool) {
        self.0.insert(number, Descriptor { of, closes });
    }

    pub fn close(&mut self, number: i32) {
        self.0.remove(&number);
    }

    pub fn keep_over_exec(&mut self, number: i32, keep: bool) {
        self.0.entry(number).and_modify(|descriptor| descriptor.closes = !keep);
    }

    /// What `close_range` is told of descriptors from the first to the last.
    pub fn close_range(&mut self, [first, last, flags]: [u32; 3]) {
        let is_meant = |number: i32| (first..=last).contains(&(number as u32));
        match flags & libc::CLOSE_RANGE_CLOEXEC {
            0 => self.0.retain(|&number, _| !is_meant(number)),
            _ => {
                let meant = self.0.iter_mut().filter(|(number, _)| is_meant(**number));
                meant.for_each(|(_, descriptor)| descriptor.closes = true);
            }
        }
    }

    /// Another program begins.
    pub fn execute(&mut self) {
        self.0.retain(|_, descriptor| !descriptor.closes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_begin_without_what_is_closed_on_exec() {
        let mut open = Descriptors::default();
        for (number, closes) in [(0, false), (3, true), (4, true), (5, false), (6, false)] {
            open.open(number, 10, closes);
        }
        open.keep_over_exec(4, true);
        open.keep_over_exec(5, false);
        open.close_range([6, u32::MAX, libc::CLOSE_RANGE_CLOEXEC]);
        assert!((3..=6).all(|number| open.get(number).is_some()));
        open.execute();
        let left: Vec<i32> = (0..=6).filter(|number| open.get(*number).is_some()).collect();
        assert_eq!(left, [0, 4]);
        open.close_range([4, u32::MAX, 0]);
        assert_eq!((open.get(0), open.get(4)), (Some(10), None));
    }
}
