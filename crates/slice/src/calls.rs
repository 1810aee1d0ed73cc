//! How threads begin and end, and by which system calls one can know what another has done.
//!
//! Whoever releases an object lets all who acquire it later know what it has done so far. Followed
//! are futexes, pipes, pairs of sockets and event counters that the process made itself, signals
//! that its threads send, and the word that the kernel clears when a thread ends.

use crate::control::Position;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// By what threads synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Object {
    /// A word of memory, by its address.
    Word(u64),
    /// What leads from one descriptor to another.
    Channel(u64),
    /// All signals that are sent.
    Signals,
    /// The beginning of a thread, by the call that created it.
    Birth(Position),
}

/// What a thread's call means to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// How many instructions had been executed then.
    pub at: Position,
    pub thread: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    Releases(Object),
    Acquires(Object),
    /// The thread's first instruction is next: who created it, if that is known.
    Begins(Option<Creator>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    pub thread: u64,
    /// The instruction that made the call.
    pub call: Position,
}

/// What has to be known of earlier calls.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Calls {
    /// Those that have not come back.
    open: FxHashMap<u64, (u64, [u64; 5])>,
    created: Vec<Created>,
    /// The word that the kernel clears when a thread ends.
    cleared: FxHashMap<u64, u64>,
    /// By descriptor.
    channels: FxHashMap<u32, u64>,
    count: u64,
    /// Words whose waiters may have been moved to another.
    requeued: Vec<(u64, u64)>,
}

/// A thread that was created and has not begun.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Created {
    by: Creator,
    /// Its stack pointer.
    stack: u64,
    cleared: Option<u64>,
}

impl Calls {
    /// A thread makes a call.
    pub fn made(&mut self, caller: Creator, number: u64, arguments: [u64; 5]) -> Vec<What> {
        self.open.insert(caller.thread, (number, arguments));
        let [first, second, _, fourth, _] = arguments;
        match number as i64 {
            libc::SYS_futex => self.futex(arguments),
            libc::SYS_clone if first & libc::CLONE_THREAD as u64 != 0 => {
                let is_cleared = first & libc::CLONE_CHILD_CLEARTID as u64 != 0;
                let cleared = is_cleared.then_some(fourth);
                self.created.retain(|created| created.stack != second);
                self.created.push(Created { by: caller, stack: second, cleared });
                vec![What::Releases(Object::Birth(caller.call))]
            }
            // Whoever reads from what was closed sees that it is over.
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_shutdown
            | libc::SYS_close => self.channel(first).map(What::Releases).into_iter().collect(),
            libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo => vec![What::Releases(Object::Signals)],
            _ => Vec::new(),
        }
    }

    /// A call of a thread is over; some give two descriptors.
    pub fn came_back(&mut self, thread: u64, result: u64, pair: Option<[u64; 2]>) -> Vec<What> {
        let Some((number, [first, second, ..])) = self.open.remove(&thread) else {
            return Vec::new();
        };
        let acquires = |object| vec![What::Acquires(object)];
        if number as i64 == libc::SYS_futex && waits(second) {
            // Whatever came of it, the kernel has looked at the word.
            let moved = self.requeued.iter().filter(|(from, _)| *from == first).map(|(_, to)| *to);
            return [first]
                .into_iter()
                .chain(moved)
                .map(Object::Word)
                .map(What::Acquires)
                .collect();
        }
        if (-4095..0).contains(&(result as i64)) {
            if number as i64 == libc::SYS_clone {
                self.created.retain(|created| created.by.thread != thread);
            }
            return Vec::new();
        }
        match number as i64 {
            libc::SYS_set_tid_address => drop(self.cleared.insert(thread, first)),
            libc::SYS_pipe | libc::SYS_pipe2 | libc::SYS_socketpair => {
                self.open_channel(pair.unwrap_or_default());
            }
            libc::SYS_eventfd | libc::SYS_eventfd2 => self.open_channel([result; 2]),
            libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => self.same_channel(first, result),
            libc::SYS_fcntl
                if [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(second as i32)) =>
            {
                self.same_channel(first, result);
            }
            libc::SYS_close => drop(self.channels.remove(&(first as u32))),
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
                return self.channel(first).map_or(Vec::new(), acquires);
            }
            libc::SYS_rt_sigtimedwait => return acquires(Object::Signals),
            _ => {}
        }
        Vec::new()
    }

    /// A thread goes on for the first time, with that stack pointer.
    pub fn begins(&mut self, thread: u64, stack: u64) -> What {
        let found = self.created.iter().position(|created| created.stack == stack);
        let created = found.map(|index| self.created.swap_remove(index));
        self.cleared.extend(created.and_then(|created| Some((thread, created.cleared?))));
        What::Begins(created.map(|created| created.by))
    }

    /// A thread has ended.
    pub fn ended(&mut self, thread: u64) -> Option<What> {
        let word = self.cleared.remove(&thread)?;
        Some(What::Releases(Object::Word(word)))
    }

    fn futex(&mut self, [word, operation, _, _, other]: [u64; 5]) -> Vec<What> {
        let release = |word| What::Releases(Object::Word(word));
        let moves = match command(operation) {
            libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_CMP_REQUEUE_PI => true,
            libc::FUTEX_WAKE_OP => false,
            _ if waits(operation) => return Vec::new(),
            _ => return vec![release(word)],
        };
        if moves && !self.requeued.contains(&(word, other)) {
            self.requeued.push((word, other));
        }
        vec![release(word), release(other)]
    }

    fn channel(&self, descriptor: u64) -> Option<Object> {
        self.channels.get(&(descriptor as u32)).copied().map(Object::Channel)
    }

    fn open_channel(&mut self, descriptors: [u64; 2]) {
        self.count += 1;
        self.channels.extend(descriptors.map(|descriptor| (descriptor as u32, self.count)));
    }

    fn same_channel(&mut self, descriptor: u64, again: u64) {
        match self.channels.get(&(descriptor as u32)) {
            Some(channel) => self.channels.insert(again as u32, *channel),
            None => self.channels.remove(&(again as u32)),
        };
    }
}

/// What a futex call is to do.
fn command(operation: u64) -> i32 {
    operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME)
}

/// Whether the one who makes such a futex call waits for others.
fn waits(operation: u64) -> bool {
    const LOCK_PI2: i32 = 13;
    matches!(
        command(operation),
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_WAIT_REQUEUE_PI
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_TRYLOCK_PI
            | LOCK_PI2
    )
}
