//! A process of which nothing has been recorded is recorded from somewhere in its middle on.

use crate::maps::{self, Mapping};
use crate::memory::Address;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::ops::Range;
use why_record::event::Event;

impl Supervisor {
    /// Begins to record a process of which nothing has been recorded.
    pub(super) fn record_from_here(&mut self, tid: Tid, registers: &Registers) -> Outcome<()> {
        let id = self.tasks[&tid].space;
        let threads = self.tasks.values().filter(|task| task.space == id);
        for thread in threads.map(|task| task.tid).collect::<Vec<_>>() {
            match &self.tasks[&thread].state {
                State::New(_) | State::Dying | State::Kept => {}
                State::InCall(call) => self.task(thread).recorded_call = Some(call.registers),
                // What it has been told is in memory.
                State::Running => self.follow_unrecorded_call(thread, registers),
                State::Ready(at) | State::Stopping(at) => {
                    let at = if thread == tid { *registers } else { *at };
                    self.follow_unrecorded_call(thread, &at);
                }
            }
        }
        let (process, count) = (self.spaces[&id].process, self.spaces[&id].count());
        let recorder = self.recorder.as_mut().expect("recording");
        recorder.open(id, process)?;
        recorder.begins_unannounced(process)?;
        recorder.find_open_files(process);
        let maps = maps::read(tid)?;
        let log = self.log(tid).expect("just opened");
        log.checkpoints.begin_after(count);
        log.heap_end = heap_end(process, &maps);
        log.segments = segments(&maps).collect();
        self.record_executed(tid, process)?;
        self.record_snapshot(tid)?;
        for (range, advice) in inherited_otherwise(process) {
            let (at, size) = (range.start, range.end - range.start);
            self.record(tid, &Event::Inherited { at, size, advice })?;
        }
        Ok(())
    }
}

/// Where a process's heap ends.
fn heap_end(process: Tid, maps: &[Mapping]) -> Option<Address> {
    let heap = maps.iter().rev().find(|mapping| mapping.name == "[heap]");
    heap.map(|heap| heap.range.end).or_else(|| heap_start(process))
}

/// Where it begins, if there is nothing in it yet.
fn heap_start(process: Tid) -> Option<Address> {
    /// Its place in the file, counted from behind the program's name.
    const START_BRK: usize = 44;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(START_BRK)?.parse().ok()
}

/// The segments of System V shared memory that are attached, and their sizes.
fn segments(maps: &[Mapping]) -> impl Iterator<Item = (Address, u64)> {
    let attached = maps.iter().filter(|mapping| mapping.name.starts_with("/SYSV"));
    attached.map(|mapping| (mapping.range.start, mapping.range.end - mapping.range.start))
}

/// What a forked process is not simply to have, and the advice that said so.
fn inherited_otherwise(process: Tid) -> Vec<(Range<Address>, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap_or_default();
    parse_inherited(&text)
}

fn parse_inherited(smaps: &str) -> Vec<(Range<Address>, i32)> {
    let mut found = Vec::new();
    let mut range = None;
    for line in smaps.lines() {
        match line.strip_prefix("VmFlags:") {
            Some(flags) => {
                let advice = flags.split_whitespace().find_map(|flag| match flag {
                    "dc" => Some(libc::MADV_DONTFORK),
                    "wf" => Some(libc::MADV_WIPEONFORK),
                    _ => None,
                });
                found.extend(range.take().zip(advice));
            }
            None => range = parse_range(line).or(range),
        }
    }
    found
}

/// The first line of a mapping.
fn parse_range(line: &str) -> Option<Range<Address>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let address = |text| Address::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forked_processes_do_not_have_is_told() {
        let smaps = "\
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
Size:                  4 kB
VmFlags: rd wr mr mw me dc ac 
7f0000001000-7f0000002000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac 
7f0000002000-7f0000004000 rw-p 00000000 00:00 0                          [anon: x]
VmFlags: rd wr mr mw me wf 
";
        let expected = [
            (0x7f00_0000_0000..0x7f00_0000_1000, libc::MADV_DONTFORK),
            (0x7f00_0000_2000..0x7f00_0000_4000, libc::MADV_WIPEONFORK),
        ];
        assert_eq!(parse_inherited(smaps), expected);
    }
}
