//! Which thread goes on, and for how many instructions, when schedules are varied.
//!
//! Nothing here knows processes: a schedule is a function of its seed and of what the
//! threads are said to do, so the same seed gives the same schedule to a program that does
//! the same.
//!
//! Each thread has a drawn priority, and of those that can run the highest runs. It does so
//! for a drawn number of instructions, and then loses its priority: it stays where it is, in
//! the middle of anything, while others go on. How long stretches are, and what else there
//! is to [`Style`], is drawn once for the whole run, because bugs differ in what they need:
//! some need two threads side by side, others one that stands still while others go a long
//! way.

use crate::task::Tid;
use std::ops::RangeInclusive;

/// Every preemption costs as much as millions of instructions do. So many are
/// free, and later there may be one for each so many instructions.
const FREE: u64 = 150;
const PRICE: u64 = 1 << 23;
/// So many are made one soon after the other when they have been saved for.
const BURST: u64 = 32;

// Lengths of stretches, as powers of two.

/// Of the longest that there are in a run.
const LONGEST: RangeInclusive<u64> = 4..=16;
/// Soon after a call.
const SOON: RangeInclusive<u64> = 0..=7;
/// When a thread is to create others first.
const STEADY: RangeInclusive<u64> = 14..=14;
/// When there are no preemptions left, and when nobody else could run.
const COARSE: RangeInclusive<u64> = 22..=25;

pub struct Schedule {
    random: Random,
    style: Style,
    /// In the order in which they began.
    threads: Vec<Thread>,
    someone_begins: bool,
    /// The lowest priority given so far.
    lowest: u64,
    /// The thread that is the lowest for a while.
    set_aside: Option<Tid>,
    /// Up to where the thread that runs may do so.
    until: Option<(Tid, u64)>,
    preemptions: u64,
    /// There are preemptions left.
    fine: bool,
    /// Whoever runs next has just made a call.
    after_call: bool,
}

struct Thread {
    tid: Tid,
    priority: u64,
    /// It was seen to wait in a call.
    waits: bool,
    /// It begins when all others wait, or when one's time is over.
    held: bool,
}

/// What distinguishes the schedules of one run from those of another.
struct Style {
    /// The power of two below the length of the longest stretches.
    longest: u64,
    /// All lengths up to the longest are equally likely; else all powers of two are.
    evenly: bool,
    /// Once in so many calls a thread that makes one loses its priority, or runs only a
    /// little longer: where programs call the kernel is where they depend on others.
    after_calls: u64,
    loses: Loses,
    /// The first thread creates others, which then begin at the same time.
    together: bool,
}

/// What becomes of a thread's priority when its time is over.
enum Loses {
    /// It is the lowest: all others come first.
    All,
    /// It is drawn anew.
    Some,
    /// It is drawn anew, but once in so many times it is the lowest until nobody else can
    /// run, or until all are drawn anew.
    Rarely(u64),
}

/// Once in so many preemptions all priorities are drawn anew, so that nobody waits for ever.
const ANEW: u64 = 64;

/// Priorities are drawn from above this, so that there are always lower ones.
const MIDDLE: u64 = 1 << 32;

impl Style {
    fn draw(random: &mut Random) -> Style {
        Style {
            longest: random.within(LONGEST).min(random.within(LONGEST)),
            evenly: random.one_in(4),
            after_calls: 1 << random.within(1..=5),
            loses: match random.below(4) {
                0 | 1 => Loses::All,
                2 => Loses::Some,
                _ => Loses::Rarely(1 << random.within(0..=6)),
            },
            together: random.one_in(2),
        }
    }
}

impl Schedule {
    /// One of many for each seed: a tree of processes needs several.
    pub fn new(seed: u64, number: u64) -> Schedule {
        let mut random = Random(seed.wrapping_add(number.wrapping_mul(0xd1b5_4a32_d192_ed03)));
        Schedule {
            style: Style::draw(&mut random),
            random,
            threads: Vec::new(),
            someone_begins: false,
            lowest: MIDDLE,
            set_aside: None,
            until: None,
            preemptions: 0,
            fine: true,
            after_call: false,
        }
    }

    /// All threads, in the order in which they began.
    pub fn threads(&self) -> impl Iterator<Item = Tid> {
        self.threads.iter().map(|thread| thread.tid)
    }

    /// A thread begins; nothing happens if it is known.
    pub fn begins(&mut self, tid: Tid) {
        if self.threads().all(|known| known != tid) {
            let priority = self.random.priority();
            let held = self.style.together && !self.threads.is_empty();
            self.threads.push(Thread { tid, priority, waits: false, held });
            self.someone_begins = true;
        }
    }

    /// Whether that has happened since somebody was chosen.
    pub fn someone_begins(&self) -> bool {
        self.someone_begins
    }

    pub fn ends(&mut self, tid: Tid) {
        self.threads.retain(|thread| thread.tid != tid);
        self.set_aside = self.set_aside.filter(|&aside| aside != tid);
    }

    /// A thread makes a call, perhaps one by which it lets others go first.
    pub fn calls(&mut self, tid: Tid, gives_way: bool) {
        self.after_call = true;
        if gives_way {
            self.hold_nobody();
            self.give_lowest(tid);
        } else if !self.is_steady(tid) && self.one_call_in_many() {
            self.redraw(tid);
        }
    }

    /// A thread waits in a call. When it can go on, it may do so at once, or much later.
    pub fn waits(&mut self, tid: Tid) {
        if let Some(thread) = self.thread(tid) {
            thread.waits = true;
        }
    }

    /// The time of a thread is over.
    pub fn preempted(&mut self, tid: Tid) {
        self.preemptions += 1;
        self.hold_nobody();
        if self.random.one_in(ANEW) {
            self.set_aside = None;
            self.threads.iter_mut().for_each(|thread| thread.priority = self.random.priority());
            return;
        }
        self.set_aside = self.set_aside.filter(|&aside| aside != tid);
        match self.style.loses {
            Loses::All => self.give_lowest(tid),
            Loses::Rarely(times) if self.set_aside.is_none() && self.random.one_in(times) => {
                self.set_aside = Some(tid);
                self.give_lowest(tid);
            }
            Loses::Rarely(_) | Loses::Some => self.redraw(tid),
        }
    }

    /// Of those that can run, the one that does.
    pub fn next(&mut self, ready: impl IntoIterator<Item = Tid>) -> Option<Tid> {
        let ready: Vec<Tid> = ready.into_iter().collect();
        ready.iter().for_each(|&tid| self.begins(tid));
        self.someone_begins = false;
        let mut all_are_held = true;
        for thread in self.threads.iter_mut().filter(|thread| ready.contains(&thread.tid)) {
            if std::mem::take(&mut thread.waits) {
                thread.priority = self.random.priority();
            }
            all_are_held &= thread.held;
        }
        if all_are_held {
            self.hold_nobody();
        }
        let ready = self.threads.iter().filter(|thread| ready.contains(&thread.tid));
        ready.max_by_key(|thread| (!thread.held, thread.priority)).map(|thread| thread.tid)
    }

    /// For how many instructions it runs, alone or not, after so many that the process has
    /// executed. Calls do not prolong a thread's time, or one could go on for ever.
    pub fn stretch(&mut self, tid: Tid, alone: bool, executed: u64) -> u64 {
        let after_call = std::mem::take(&mut self.after_call);
        if alone {
            self.until = None;
            return self.random.about(COARSE);
        }
        let going_on = self.until.filter(|(who, until)| *who == tid && *until > executed);
        let mut stretch = match going_on {
            Some((_, until)) => until - executed,
            None => self.draw_stretch(tid, executed),
        };
        if after_call && self.fine && !self.is_steady(tid) && self.one_call_in_many() {
            stretch = stretch.min(self.random.about(SOON));
        }
        self.until = Some((tid, executed + stretch));
        stretch
    }

    fn draw_stretch(&mut self, tid: Tid, executed: u64) -> u64 {
        let allowed = FREE + executed / PRICE;
        let left = allowed.saturating_sub(self.preemptions);
        self.fine = left >= BURST || self.fine && left > 0;
        if !self.fine {
            self.random.about(COARSE)
        } else if self.is_steady(tid) {
            self.random.about(STEADY)
        } else if self.style.evenly {
            1 + self.random.below(2 << self.style.longest)
        } else {
            self.random.about(0..=self.style.longest)
        }
    }

    fn one_call_in_many(&mut self) -> bool {
        self.random.one_in(self.style.after_calls)
    }

    /// Whether the thread is to create others before anything else happens.
    fn is_steady(&self, tid: Tid) -> bool {
        self.style.together && self.threads().next() == Some(tid)
    }

    fn hold_nobody(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.held = false);
    }

    fn redraw(&mut self, tid: Tid) {
        let priority = self.random.priority();
        self.set(tid, priority);
    }

    fn give_lowest(&mut self, tid: Tid) {
        self.lowest -= 1;
        self.set(tid, self.lowest);
    }

    fn set(&mut self, tid: Tid, priority: u64) {
        if let Some(thread) = self.thread(tid) {
            thread.priority = priority;
        }
    }

    fn thread(&mut self, tid: Tid) -> Option<&mut Thread> {
        self.threads.iter_mut().find(|thread| thread.tid == tid)
    }
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn priority(&mut self) -> u64 {
        MIDDLE + self.below(MIDDLE)
    }

    /// A number of which any power of two is equally likely to be the one below it.
    fn about(&mut self, powers: RangeInclusive<u64>) -> u64 {
        let power = self.within(powers);
        (1 << power) + self.below(1 << power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: std::ops::Range<u64> = 0..300;

    /// Runs threads that are always ready; who ran, and for how long.
    fn run(seed: u64, threads: i32, decisions: usize) -> Vec<(Tid, u64)> {
        let mut schedule = Schedule::new(seed, 0);
        let mut executed = 0;
        let mut ran = Vec::new();
        for _ in 0..decisions {
            let next = schedule.next(0..threads).expect("all are ready");
            let stretch = schedule.stretch(next, false, executed);
            executed += stretch;
            schedule.preempted(next);
            ran.push((next, stretch));
        }
        ran
    }

    #[test]
    fn a_seed_says_all() {
        for seed in SEEDS {
            assert_eq!(run(seed, 3, 100), run(seed, 3, 100));
        }
        let all: std::collections::BTreeSet<_> = SEEDS.map(|seed| run(seed, 3, 100)).collect();
        assert_eq!(all.len(), SEEDS.count());
    }

    #[test]
    fn nobody_waits_for_ever_for_one_that_is_always_ready() {
        for seed in SEEDS {
            let ran = run(seed, 4, 20_000);
            for tid in 0..4 {
                let turns = ran.iter().filter(|(who, _)| *who == tid).count();
                assert!(turns > 20, "thread {tid} has {turns} turns with seed {seed}");
            }
        }
    }

    #[test]
    fn one_that_makes_calls_all_the_time_does_not_keep_others_waiting() {
        for seed in SEEDS {
            let mut schedule = Schedule::new(seed, 0);
            let (mut executed, mut turns) = (0, [0; 2]);
            while turns[1] == 0 {
                let next = schedule.next([0, 1]).expect("both are ready");
                turns[next as usize] += 1;
                let stretch = schedule.stretch(next, false, executed);
                executed += stretch.min(100);
                if stretch <= 100 {
                    schedule.preempted(next);
                } else {
                    schedule.calls(next, false);
                }
                assert!(turns[0] < 1_000_000, "thread 1 has no turn with seed {seed}");
            }
        }
    }

    #[test]
    fn stretches_are_short_and_long() {
        let lengths: Vec<u64> =
            SEEDS.flat_map(|seed| run(seed, 2, 50)).map(|(_, length)| length).collect();
        let among = |range: std::ops::Range<u64>| {
            lengths.iter().filter(|length| range.contains(length)).count()
        };
        assert_eq!(among(0..1), 0);
        for range in [1..8, 8..64, 64..512, 512..4096, 4096..1 << 15] {
            assert!(among(range.clone()) > lengths.len() / 100, "{range:?}");
        }
    }

    #[test]
    fn preemptions_are_limited_by_what_is_executed() {
        for seed in SEEDS {
            let ran = run(seed, 2, 20_000);
            let executed: u64 = ran.iter().map(|(_, length)| length).sum();
            let allowed = FREE + executed / PRICE;
            assert!(ran.len() as u64 <= allowed + 1, "{} of {allowed}", ran.len());
        }
    }

    #[test]
    fn one_that_yields_lets_all_others_go_first() {
        for seed in SEEDS {
            let mut schedule = Schedule::new(seed, 0);
            let first = schedule.next([1, 2]).expect("both are ready");
            schedule.calls(first, true);
            assert_ne!(schedule.next([1, 2]), Some(first));
        }
    }

    #[test]
    fn only_those_that_are_ready_run() {
        for seed in SEEDS {
            let mut schedule = Schedule::new(seed, 0);
            (1..=3).for_each(|tid| schedule.begins(tid));
            assert_eq!(schedule.next([2]), Some(2));
            schedule.waits(2);
            assert!(matches!(schedule.next([1, 3]), Some(1 | 3)));
            schedule.ends(1);
            assert_eq!(schedule.next([3]), Some(3));
            assert_eq!(schedule.next([]), None);
        }
    }
}
