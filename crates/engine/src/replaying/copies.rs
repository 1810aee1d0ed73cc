//! Which copies of a replayed process are kept: how far apart they are made, and which to do
//! without when there are too many. It knows moments only, no processes.

/// So many there are at most.
const MOST: usize = 24;
/// The distance of two grows with the way that has been gone since the last jump, so that an
/// hour's replay makes a few hundred.
const PARTS: u64 = 16;

/// When something was, in the order of time: the event with which a thread went on, and how
/// many instructions it had executed since.
pub type When = (u64, u64);

/// A copy, and what is known of its moment.
pub struct Kept<T> {
    pub when: When,
    /// How much work it is from the beginning up to here.
    pub work: u64,
    pub copy: T,
}

pub struct Copies<T> {
    /// In the order of time.
    kept: Vec<Kept<T>>,
    /// The least distance of two, in work.
    distance: u64,
    /// The work up to where the replay began to go forward.
    since: u64,
    /// Up to the last copy that was made or met since then.
    last: u64,
}

impl<T> Copies<T> {
    pub fn new(distance: u64) -> Copies<T> {
        Copies { kept: Vec::new(), distance, since: 0, last: 0 }
    }

    /// The replay goes on from here.
    pub fn begin_at(&mut self, work: u64) {
        self.since = work;
        self.last = work;
    }

    /// The work after which another one is wanted.
    pub fn due(&self) -> u64 {
        self.last.saturating_add(self.distance_at(self.last)).max(1)
    }

    /// So much earlier will do: to stop exactly somewhere takes much longer.
    pub fn near(&self) -> u64 {
        self.distance / 64
    }

    fn distance_at(&self, work: u64) -> u64 {
        self.distance.max(work.saturating_sub(self.since) / PARTS)
    }

    /// It is time for one: whether it is worth it here, or there is one nearby.
    pub fn is_wanted(&mut self, work: u64) -> bool {
        let near = self.distance_at(work) / 2;
        self.last = work;
        !self.kept.iter().any(|kept| kept.work.abs_diff(work) < near.max(1))
    }

    pub fn add(&mut self, kept: Kept<T>) {
        let at = self.kept.partition_point(|other| other.when <= kept.when);
        self.kept.insert(at, kept);
    }

    /// The last one that is not behind this moment; the last of all if none is given.
    pub fn before(&self, when: Option<When>) -> Option<&Kept<T>> {
        let end = match when {
            Some(when) => self.kept.partition_point(|kept| kept.when <= when),
            None => self.kept.len(),
        };
        self.kept.get(end.checked_sub(1)?)
    }

    /// Takes one away if there are too many.
    pub fn take_superfluous(&mut self, work: u64) -> Option<T> {
        if self.kept.len() > MOST { self.take_least(work) } else { None }
    }

    /// Takes away the one that is missed least from here: what is left is the denser the
    /// nearer it is. The last of all stays longest: it is the way to whatever is still ahead.
    pub fn take_least(&mut self, work: u64) -> Option<T> {
        let last = self.kept.len().checked_sub(1)?;
        let least = (0..last.max(1))
            .min_by(|&a, &b| self.worth(a, work).total_cmp(&self.worth(b, work)))?;
        Some(self.kept.remove(least).copy)
    }

    /// How much longer the way to what follows becomes without one, measured by how far it is
    /// from here.
    fn worth(&self, index: usize, work: u64) -> f64 {
        let before = index.checked_sub(1).map_or(0, |before| self.kept[before].work);
        let own = self.kept[index].work;
        let next = self.kept.get(index + 1).map_or(work.max(own), |next| next.work);
        let away = own.abs_diff(work);
        next.saturating_sub(before) as f64 / away.max(1) as f64
    }

    pub fn take_all(&mut self) -> Vec<T> {
        self.kept.drain(..).map(|kept| kept.copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes forward from one place to another, as a replay does.
    fn go(copies: &mut Copies<u64>, from: u64, to: u64) -> usize {
        copies.begin_at(from);
        let mut made = 0;
        let mut work = from;
        while copies.due() <= to {
            work = work.max(copies.due());
            if copies.is_wanted(work) {
                copies.add(Kept { when: (work, 0), work, copy: work });
                made += 1;
            }
            while copies.take_superfluous(work).is_some() {}
        }
        made
    }

    fn works(copies: &Copies<u64>) -> Vec<u64> {
        copies.kept.iter().map(|kept| kept.work).collect()
    }

    #[test]
    fn few_are_made_and_fewer_kept_and_the_way_back_is_short() {
        const END: u64 = 10_000_000;
        let mut copies = Copies::new(100);
        let made = go(&mut copies, 0, END);
        assert!(made < 250, "{made}");
        let works = works(&copies);
        assert_eq!(works.len(), MOST);
        // From wherever one comes, what has to be replayed is at most as much as what lies
        // between there and here, or little.
        for back in [1_000_000, 3_000_000, 6_000_000, 9_000_000] {
            let at = END - back;
            let before = copies.before(Some((at, 0))).map_or(0, |kept| kept.work);
            assert!(at - before <= back, "{back}: {works:?}");
        }
    }

    #[test]
    fn where_one_has_gone_back_they_lie_dense() {
        let mut copies = Copies::new(100);
        go(&mut copies, 0, 10_000_000);
        let from = copies.before(Some((5_000_000, 0))).unwrap().work;
        go(&mut copies, from, 5_000_000);
        let before = copies.before(Some((4_999_999, 0))).unwrap().work;
        assert!(5_000_000 - before <= (5_000_000 - from) / 8, "{:?}", works(&copies));
        // What is ahead is not far from copies either.
        let ahead = copies.before(None).unwrap().work;
        assert!(ahead > 9_000_000, "{:?}", works(&copies));
    }

    #[test]
    fn none_is_made_beside_another() {
        let mut copies = Copies::new(100);
        assert_eq!(go(&mut copies, 0, 1_000), 10);
        assert_eq!(go(&mut copies, 0, 1_000), 0);
    }

    #[test]
    fn the_last_one_before_a_moment_is_found() {
        let mut copies = Copies::new(1);
        for when in [(3, 0), (1, 5), (1, 7)] {
            copies.add(Kept { when, work: when.0, copy: when.0 * 10 + when.1 });
        }
        let found = |when| copies.before(when).map(|kept| kept.copy);
        assert_eq!(found(Some((1, 4))), None);
        assert_eq!(found(Some((1, 6))), Some(15));
        assert_eq!(found(Some((1, 7))), Some(17));
        assert_eq!(found(Some((9, 0))), Some(30));
        assert_eq!(found(None), Some(30));
    }
}
