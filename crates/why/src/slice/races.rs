//! Races among the dependences of a slice, as they are shown.

use super::lines::{Line, Place, Sources};
use super::ways;
use serde::{Deserialize, Serialize};
use why_slice::races::{Party, Race};
use why_slice::region::Region;

/// One thread read what another one wrote, and nothing orders the two.
#[derive(Serialize, Deserialize)]
pub struct ShownRace {
    pub write: ShownParty,
    pub read: ShownParty,
    /// The address of the first byte.
    pub memory: u64,
    /// How often it happened; what else is told is of the last time.
    pub times: u64,
    /// Which line wrote, if that is shown.
    pub line: Option<usize>,
}

#[derive(Serialize, Deserialize)]
pub struct ShownParty {
    pub place: String,
    pub thread: u64,
    /// In the recording, and in the trace.
    pub position: Option<String>,
    pub number: u64,
    pub address: u64,
}

impl ShownRace {
    /// All of it.
    pub fn told(&self) -> String {
        let ShownParty { place, thread, .. } = &self.write;
        let ShownParty { place: reads_at, thread: reader, .. } = &self.read;
        format!(
            "a race: nothing orders what thread {thread} wrote at {place} before thread {reader} \
             reads it at {reads_at}"
        )
    }

    /// Below what wrote, which is shown as done by a thread, the last one that did it.
    pub fn told_below(&self, shown: u64) -> String {
        let ShownParty { place, thread, .. } = &self.read;
        let this = match self.write.thread {
            writer if writer == shown => "this".to_owned(),
            writer => format!("what thread {writer} wrote"),
        };
        format!("a race: nothing orders {this} before thread {thread} reads it at {place}")
    }
}

/// How the names of functions begin by which threads wait for each other.
const ORDERING: [&str; 14] = [
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_cond_",
    "pthread_barrier_",
    "pthread_spin_",
    "pthread_once",
    "__pthread_once",
    "sem_",
    "mtx_",
    "cnd_",
    "call_once",
    "__cxa_guard_",
    "_ZNSt18condition_variable",
    "_ZNSt22condition_variable_any",
];

impl Sources<'_> {
    /// Whether this is within a call by which threads wait for each other: what it keeps of who holds
    /// what is its own affair.
    fn orders_threads(&self, of: &Party) -> bool {
        let name = of.site.and_then(|site| {
            let module = self.module(site)?;
            ways::called_at(&module.image, module.linked(site))
        });
        name.is_some_and(|name| ORDERING.iter().any(|begin| name.starts_with(begin)))
    }
}

/// Races between lines, each pair once. What happens where nothing of the program's own is shown on
/// either side, as when threads end, is the libraries' own affair, and so is what they do to order
/// threads.
pub fn shown(
    races: &[Race],
    region: &Region,
    sources: &mut Sources,
    lines: &[Line],
) -> Vec<ShownRace> {
    let mut shown: Vec<((Place, Place), ShownRace)> = Vec::new();
    for race in races {
        let parties = [&race.write, &race.read].map(|of| of.site.unwrap_or(of.address));
        let is_ordering = sources.orders_threads(&race.write) && sources.orders_threads(&race.read);
        if is_ordering || sources.lines(parties).is_empty() {
            continue;
        }
        let mut place = |of: &Party| sources.place_of(of.site.unwrap_or(of.address)).clone();
        let between = (place(&race.write), place(&race.read));
        let party = |of: &Party, place: &Place| ShownParty {
            place: place.told(),
            thread: of.thread,
            position: region.moment(of.position).map(|(event, ticks)| format!("{event}.{ticks}")),
            number: of.position,
            address: of.address,
        };
        let (write, read) = (party(&race.write, &between.0), party(&race.read, &between.1));
        let line = lines.iter().position(|line| line.place == between.0);
        let (memory, mut times) = (race.memory, race.times);
        match shown.iter_mut().find(|(before, _)| *before == between) {
            Some((_, before)) => {
                times += before.times;
                *before = ShownRace { write, read, memory, times, line };
            }
            None => shown.push((between, ShownRace { write, read, memory, times, line })),
        }
    }
    shown.into_iter().map(|(_, race)| race).collect()
}
