//! Recordings that somebody else has written: every checksum is right, and the events say
//! what no program ever did. Nothing may come of it but an end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use why_record::event::{Access, Cause, Event, Place, Source, Stream};
use why_record::files::Hash;
use why_record::stream::{Reader, Writer};
use why_record::vectors::{Component, LEGACY_BYTES, Vectors};

use crate::support::random::{Random, turns};
use crate::support::recorded::{Setting, files_below, text};

/// How often, unless `WHY_TURNS` says more.
const TURNS: usize = 100;

/// Threads, a child, memory that is moved and shared, and something to read.
const PROGRAM: &str = "
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void *count(void *sum) {
        for (long i = 0; i < 100000; i++) ++*(volatile long *)sum;
        return sum;
    }
    static char bytes[100000];
    int main(int argc, char **argv) {
        pthread_t thread;
        int file = open(argv[0], O_RDONLY);
        while (read(file, bytes, 5000) > 0);
        lseek(file, 0, SEEK_SET);
        while (read(file, bytes, sizeof bytes) > 0);
        static long sum;
        char *shared = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char *moved = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        moved = mremap(moved, 8192, 65536, MREMAP_MAYMOVE);
        moved[9000] = shared[5000] = 1;
        pthread_create(&thread, 0, count, &sum);
        count(&sum);
        pthread_join(thread, 0);
        if (fork() == 0) return printf(\"child\\n\") != 6;
        wait(0);
        mprotect(moved, 4096, PROT_READ);
        munmap(moved, 65536);
        printf(\"%d\\n\", sum > 0);
        return 0;
    }";

#[test]
fn whatever_a_strangers_recording_says_only_ends_its_replay() {
    let setting = Setting::new();
    let program = setting.compile("program", PROGRAM);
    // It reads itself, and is long enough for that to be told by the place in the file.
    File::options().write(true).open(program).unwrap().set_len(500_000).unwrap();
    let record = ["record", "--checkpoints", "0.002", "-o", "rec", "--", "./program"];
    assert!(setting.run(&record).status.success());
    let mut streams = files_below(&setting.path("rec/events"));
    // Of checkpoints only the last is looked at when the end is asked for.
    streams.extend(last_checkpoint(&setting));
    let told = read(&streams[0]);
    let is_there = |kind: fn(&Event) -> bool| assert!(told.iter().any(kind), "{told:?}");
    is_there(|event| matches!(event, Event::Copied { .. }));
    is_there(|event| matches!(event, Event::CallFromFile { .. }));
    let originals: Vec<Vec<u8>> = streams.iter().map(|path| fs::read(path).unwrap()).collect();
    let hashes: Vec<Hash> =
        files_below(&setting.path("rec/files")).iter().map(|path| hash(path)).collect();
    let mut random = Random::new();
    for turn in 0..turns(TURNS) {
        let at = random.below(streams.len());
        let (path, original) = (&streams[at], &originals[at]);
        let mut events = read(path);
        let changes = 1 + random.below(3);
        let changed: Vec<String> =
            (0..changes).map(|_| change(&mut events, &hashes, &mut random)).collect();
        fs::remove_file(path).unwrap();
        write(path, &events);
        ends(&setting).unwrap_or_else(|how| {
            panic!("turn {turn}, {}: {}: {how}", path.display(), changed.join("; "))
        });
        fs::write(path, original).unwrap();
    }
}

fn last_checkpoint(setting: &Setting) -> Option<PathBuf> {
    let checkpoints = files_below(&setting.path("rec/checkpoints"));
    let events = |path: &PathBuf| path.extension()?.to_str()?.parse::<u64>().ok();
    checkpoints.into_iter().max_by_key(events)
}

/// Both a replay of all and one of what follows a checkpoint.
fn ends(setting: &Setting) -> Result<(), String> {
    for words in [&["replay", "rec"][..], &["print", "rec", "end"]] {
        let mut command = setting.command("timeout");
        command.args(["--signal=KILL", "60", env!("CARGO_BIN_EXE_why")]).args(words);
        let ended = command.output().unwrap();
        let said = text(&ended.stderr);
        match ended.status.code() {
            None | Some(137) => return Err(format!("{words:?} did not end: {said}")),
            Some(125) if said.lines().count() != 1 => return Err(format!("{words:?} said {said}")),
            _ if said.contains("defect") => return Err(said),
            _ => {}
        }
    }
    Ok(())
}

fn hash(path: &Path) -> Hash {
    let name = path.file_name().unwrap().to_str().unwrap();
    Hash(u128::from_str_radix(name, 16).unwrap())
}

fn read(path: &Path) -> Vec<Event> {
    let mut reader = Reader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap()).collect()
}

fn write(path: &Path, events: &[Event]) {
    let mut writer = Writer::create(path).unwrap();
    events.iter().for_each(|event| writer.add(event).unwrap());
    writer.flush().unwrap();
}

/// Changes something, and says what.
fn change(events: &mut Vec<Event>, hashes: &[Hash], random: &mut Random) -> String {
    let at = random.below(events.len());
    match random.below(6) {
        0 => format!("without {:?}", short(&events.remove(at))),
        1 => {
            let other = random.below(events.len());
            events.swap(at, other);
            format!("{at} and {other} swapped")
        }
        2 => {
            let other = events[random.below(events.len())].clone();
            let said = format!("{at} after {:?}", short(&other));
            events.insert(at, other);
            said
        }
        3 => {
            let new = made_up(hashes, random);
            let said = format!("{at} after {:?}", short(&new));
            events.insert(at, new);
            said
        }
        _ => {
            alter(&mut events[at], hashes, random);
            format!("{at} is {:?}", short(&events[at]))
        }
    }
}

fn short(event: &Event) -> String {
    format!("{event:?}").chars().take(160).collect()
}

/// Numbers that are often taken for granted not to come.
fn number(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => u64::MAX - random.below(5000) as u64,
        2 => 1 << random.below(64),
        3 => 0x7fff_ffff_f000 + random.below(8192) as u64,
        4 => random.below(100_000) as u64,
        _ => random.number(),
    }
}

fn page(random: &mut Random) -> u64 {
    number(random) & !0xfff
}

fn access(random: &mut Random) -> Access {
    let mut any = || random.below(2) == 0;
    Access { read: any(), write: any(), execute: any() }
}

fn source(hashes: &[Hash], random: &mut Random) -> Source {
    match random.below(6) {
        0 => Source::Zero,
        1 => Source::Stack,
        2 => Source::Shared { object: random.below(3) as u32, offset: page(random) },
        3 => Source::Private { object: random.below(3) as u32, offset: page(random) },
        4 => {
            Source::File { hash: *random.one_of(hashes), offset: number(random), name: "x".into() }
        }
        _ => Source::File {
            hash: Hash(u128::from(random.number())),
            offset: page(random),
            name: String::new(),
        },
    }
}

/// The first registers have the right size, so that their values count.
fn vectors(random: &mut Random) -> Vectors {
    let mut bytes = |size: usize| (0..size).map(|_| random.number() as u8).collect::<Vec<u8>>();
    let (legacy, upper) = (bytes(LEGACY_BYTES), bytes(256));
    let component = Component { number: 2 + random.below(9) as u8, bytes: upper };
    Vectors { legacy_in_use: random.below(4) as u8, legacy, components: vec![component] }
}

fn made_up(hashes: &[Hash], random: &mut Random) -> Event {
    let (at, size) = (page(random), page(random));
    match random.below(17) {
        0 => Event::Mapped { at, size, access: access(random), source: source(hashes, random) },
        1 => Event::Unmapped { at, size },
        2 => Event::Protected { at, size, access: access(random) },
        3 => Event::Moved { from: at, size, to: page(random), new_size: page(random), stays: true },
        4 => Event::Wrote { at: number(random), bytes: vec![0xcc; random.below(70_000)] },
        5 => Event::Calls((0..random.below(3000)).map(|_| random.number() as u8).collect()),
        6 => Event::Vectors(vectors(random)),
        7 => Event::Forked { child: random.number() as i32 },
        8 => Event::ThreadEnded { thread: random.number() as i32 },
        9 => Event::Replaced,
        11 => Event::Thread { thread: random.below(9) as i32, registers: Default::default() },
        12 => {
            let mut some =
                || (0..random.below(20)).map(|_| (page(random), number(random))).collect();
            Event::Hashes { pages: some(), left_out: some() }
        }
        13 => {
            let (chunks, bytes) = (random.below(9) as u32, number(random));
            let (events, instructions) = (number(random), number(random));
            Event::Checkpoint(Place {
                events,
                instructions,
                chunks,
                bytes,
                stretch: (events, chunks.into()),
            })
        }
        10 => {
            let (at, size) = (number(random), number(random));
            Event::Output { stream: Stream::Error, order: number(random), at, size }
        }
        14 => {
            let (hash, offset) = (*random.one_of(hashes), number(random));
            Event::Copied { at: number(random), size: number(random), hash, offset }
        }
        15 => {
            let (hash, offset) = (*random.one_of(hashes), number(random));
            let (result, size) = (number(random), number(random) as u32);
            Event::CallFromFile { number: random.below(20) as u32, result, hash, offset, size }
        }
        _ => Event::Resumed { thread: random.below(9) as i32, registers: Default::default() },
    }
}

fn alter(event: &mut Event, hashes: &[Hash], random: &mut Random) {
    let new = made_up(hashes, random);
    match event {
        Event::Stopped { instructions, cause, .. } => match random.below(3) {
            0 => *instructions = instructions.wrapping_add(random.below(100) as u64),
            1 => *instructions = number(random),
            _ => {
                let signal = random.number() as i32;
                let causes = [Cause::Begins, Cause::Instruction, Cause::Preempted];
                let told = [Cause::Call(7), Cause::Fault(signal), Cause::Signal(signal)];
                *cause = *random.one_of(&[causes, told].concat());
            }
        },
        Event::Resumed { thread, .. } => *thread = random.below(99) as i32,
        Event::Vectors(told) => *told = vectors(random),
        Event::Calls(bytes) | Event::Wrote { bytes, .. } => {
            if bytes.is_empty() || random.below(4) == 0 {
                bytes.resize(random.below(100_000), 0xff);
            } else {
                let at = random.below(bytes.len());
                bytes[at] = random.number() as u8;
            }
        }
        Event::Mapped { at, size, access: allowed, source: from } => match random.below(4) {
            0 => *at = number(random),
            1 => *size = number(random),
            2 => *allowed = access(random),
            _ => *from = source(hashes, random),
        },
        Event::Copied { at, size, offset, .. } => {
            let fields = [at, size, offset];
            let which = random.below(fields.len());
            *fields.into_iter().nth(which).expect("one of them") = number(random);
        }
        Event::CallFromFile { number: call, result, offset, size, .. } => match random.below(4) {
            0 => *call = random.below(20) as u32,
            1 => *result = number(random),
            2 => *offset = number(random),
            _ => *size = number(random) as u32,
        },
        Event::Unmapped { at, size } | Event::Protected { at, size, .. } => {
            (*at, *size) = (at.wrapping_add(page(random)), number(random));
        }
        Event::Moved { from, size, to, new_size, .. } => {
            let fields = [from, size, to, new_size];
            let which = random.below(fields.len());
            *fields.into_iter().nth(which).expect("one of them") = number(random);
        }
        Event::Output { at, size, order, .. } => match random.below(3) {
            0 => *at = number(random),
            1 => *size = number(random),
            _ => *order = number(random),
        },
        _ => *event = new,
    }
}
