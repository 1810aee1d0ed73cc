//! The instructions of a function, and where each can lead.

use crate::{Program, tables};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use rustc_hash::{FxHashMap, FxHashSet};

/// More instructions than any function has: what has more is no code.
const MOST: usize = 1 << 20;

pub struct Instructions {
    pub all: FxHashMap<u64, Instruction>,
    /// Where jumps lead, and what comes behind them.
    pub leaders: FxHashSet<u64>,
    /// Where each jump leads within the function.
    pub targets: FxHashMap<u64, Vec<u64>>,
    /// Where calls go on if what they called throws.
    pub landings: FxHashMap<u64, u64>,
    /// Indirect jumps of which only some targets are known: those that were seen.
    seen: Vec<u64>,
}

/// What comes of an instruction.
pub enum Flow {
    /// The next one.
    On,
    /// One of the targets, or also the next one.
    Jump { or_on: bool },
    /// The function is left, or nobody knows what follows.
    Ends,
}

impl Instructions {
    /// All that can be reached from the entry.
    pub fn of(program: &dyn Program, entry: u64) -> Instructions {
        let mut found = Instructions {
            all: FxHashMap::default(),
            leaders: FxHashSet::from_iter([entry]),
            targets: FxHashMap::default(),
            landings: FxHashMap::default(),
            seen: Vec::new(),
        };
        let mut open = vec![entry];
        loop {
            while let Some(leader) = open.pop() {
                open.extend(found.follow(program, entry, leader));
            }
            let Some(leader) = found.unreached(program, entry) else {
                return found;
            };
            found.leaders.insert(leader);
            open.push(leader);
            for jump in &found.seen {
                found.targets.entry(*jump).or_default().push(leader);
            }
        }
    }

    /// The first code of the function that no known way leads to, if there is a jump that may lead
    /// there: one that was seen to stay within the function, and whose table is not known.
    fn unreached(&self, program: &dyn Program, entry: u64) -> Option<u64> {
        if self.seen.is_empty() || self.all.len() >= MOST {
            return None;
        }
        let is_new = |at: &u64| !self.all.contains_key(at);
        let ends = self.all.values().map(Instruction::next_ip).filter(is_new);
        let code = ends.filter_map(|end| behind_padding(program, entry, end)).filter(is_new);
        code.filter(|at| !self.leaders.contains(at)).min()
    }

    /// Goes on from a leader to where that ends; the new leaders.
    fn follow(&mut self, program: &dyn Program, entry: u64, leader: u64) -> Vec<u64> {
        let mut at = leader;
        let (mut new, mut block) = (Vec::new(), Vec::new());
        while !self.all.contains_key(&at) && self.all.len() < MOST {
            let Some(insn) = decode(program, at) else {
                break;
            };
            self.all.insert(at, insn);
            block.push(insn);
            let next = insn.next_ip();
            if let Some(pad) = landing_pad(program, entry, &insn) {
                self.landings.insert(at, pad);
                new.extend(self.leaders.insert(pad).then_some(pad));
            }
            match flow(program, &insn) {
                Flow::On => {}
                Flow::Ends => break,
                Flow::Jump { or_on } => {
                    let mut targets = match insn.flow_control() {
                        FlowControl::IndirectBranch => {
                            let way = [self.in_front_of(leader), block].concat();
                            self.indirect(program, entry, &way)
                        }
                        FlowControl::Call => self.landings.get(&at).copied().into_iter().collect(),
                        _ => vec![insn.near_branch_target()],
                    };
                    targets.retain(|target| program.is_within(entry, *target));
                    new.extend(targets.iter().copied().filter(|t| self.leaders.insert(*t)));
                    self.targets.insert(at, targets);
                    if or_on && self.leaders.insert(next) {
                        new.push(next);
                    }
                    break;
                }
            }
            if !program.is_within(entry, next) {
                break;
            }
            at = next;
        }
        new
    }
}

impl Instructions {
    /// Where an indirect jump at the end of a way can lead.
    fn indirect(&mut self, program: &dyn Program, entry: u64, way: &[Instruction]) -> Vec<u64> {
        let jump = way.last().expect("the jump itself").ip();
        let mut targets = tables::targets(program, entry, way);
        let seen = program.seen_targets(jump);
        let stays = seen.iter().any(|target| program.is_within(entry, *target));
        if targets.is_empty() && stays {
            self.seen.push(jump);
        }
        targets.extend(seen);
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Instructions in front of a leader: a branch, and what it depends on.
    fn in_front_of(&self, leader: u64) -> Vec<Instruction> {
        const FEW: usize = 48;
        let before = |at: u64| {
            let known = (1..=15).filter_map(|size| self.all.get(&at.wrapping_sub(size)));
            known.into_iter().find(|insn| insn.next_ip() == at).copied()
        };
        let mut way = Vec::new();
        let mut at = leader;
        while way.len() < FEW
            && let Some(insn) = before(at)
        {
            at = insn.ip();
            way.push(insn);
        }
        way.reverse();
        way
    }
}

/// What is behind instructions that only fill up.
fn behind_padding(program: &dyn Program, entry: u64, mut at: u64) -> Option<u64> {
    loop {
        let insn = decode(program, at).filter(|_| program.is_within(entry, at))?;
        if !matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
            return Some(at);
        }
        at = insn.next_ip();
    }
}

/// Where a call goes on if what it called throws.
fn landing_pad(program: &dyn Program, entry: u64, insn: &Instruction) -> Option<u64> {
    let calls = insn.is_call_near() || insn.flow_control() == FlowControl::IndirectCall;
    let pad = calls.then(|| program.landing_pad(insn.ip())).flatten();
    pad.filter(|pad| program.is_within(entry, *pad))
}

/// What comes of an instruction.
pub fn flow(program: &dyn Program, insn: &Instruction) -> Flow {
    match insn.flow_control() {
        FlowControl::Next | FlowControl::IndirectCall | FlowControl::XbeginXabortXend => Flow::On,
        FlowControl::Call if insn.is_call_near() => {
            match program.may_return(insn.near_branch_target()) {
                true => Flow::On,
                // To where what it throws is caught, or out of the function.
                false => Flow::Jump { or_on: false },
            }
        }
        FlowControl::ConditionalBranch => Flow::Jump { or_on: true },
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
            Flow::Jump { or_on: false }
        }
        // A system call.
        FlowControl::Call => Flow::On,
        FlowControl::Interrupt if insn.mnemonic() == Mnemonic::Int => Flow::On,
        FlowControl::Interrupt | FlowControl::Return | FlowControl::Exception => Flow::Ends,
    }
}

fn decode(program: &dyn Program, at: u64) -> Option<Instruction> {
    let mut bytes = [0; 15];
    let got = program.read(at, &mut bytes);
    let insn = Decoder::with_ip(64, &bytes[..got], at, DecoderOptions::NONE).decode();
    (!insn.is_invalid()).then_some(insn)
}
