//! The code cache: which application code has been translated, where it lies, and
//! how its pieces are linked. It knows bytes and addresses, no processes.

use crate::arena::{Arena, Item};
use crate::calls;
use crate::error::{EngineError, Result};
use crate::memory::{Address, page_of};
use crate::shared::SharedMemory;
use crate::tracing::Shapes;
use rustc_hash::FxHashMap;
use std::time::Instant;
use why_trace::{FIRST_UNIT_ID, RecordShape};
use why_translate::context::{
    CALL_CLASSES, CALL_CLASSES_BYTES, TARGETS, TARGETS_BYTES,
};
use why_translate::{ExitKind, Request, Tool, TranslateError, Unit, chain, translate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u32);

pub struct Placed {
    pub unit: Unit,
    pub at: Address,
    arena: usize,
    /// The application code has changed: nothing may enter any more.
    dead: bool,
    pub trace_id: u32,
}

/// An indirect target's entry.
struct LinkPlace {
    /// The application address it answers to.
    key: Address,
    at: Address,
    arena: usize,
    miss: u32,
    difference: u32,
}

/// Where an application address gets its bytes from.
pub trait CodeSource {
    /// Up to `buffer.len()` bytes of executable code from `pc` on.
    fn fetch(&mut self, pc: Address, buffer: &mut [u8]) -> usize;

    /// Whether the code there may change without the engine being told.
    fn can_change_unseen(&self, pc: Address) -> bool;
}

pub struct Code {
    tool: Tool,
    pub arenas: Vec<Arena>,
    /// Call classes and indirect targets, as [`why_translate::context`] lays them out.
    pub tables: SharedMemory,
    units: Vec<Placed>,
    by_pc: FxHashMap<Address, UnitId>,
    by_page: FxHashMap<Address, Vec<UnitId>>,
    /// Exits that wait for a unit at this address.
    waiting: FxHashMap<Address, Vec<(UnitId, u32)>>,
    links: Vec<LinkPlace>,
    link_of: FxHashMap<Address, u32>,
    /// Links by the low 16 bits of their address, in the order of their chain.
    chains: FxHashMap<u16, Vec<u32>>,
    pub statistics: Statistics,
    /// What each trace id stands for: one list for all caches and readers.
    pub shapes: Shapes,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub units: u64,
    pub bytes: u64,
    pub nanoseconds: u64,
}

/// Units translated ahead of need at one stop.
const AHEAD: usize = 24;

/// With a link's number, the address it answers to when invalidated: nothing can
/// be there.
const NOWHERE: Address = 1 << 63;

impl Code {
    pub fn new(tool: Tool, shapes: Shapes) -> Result<Code> {
        let tables = SharedMemory::new("tables", CALL_CLASSES_BYTES + TARGETS_BYTES)?;
        tables.write(0, calls::class_table());
        Ok(Code {
            tool,
            arenas: Vec::new(),
            tables,
            units: Vec::new(),
            by_pc: FxHashMap::default(),
            by_page: FxHashMap::default(),
            waiting: FxHashMap::default(),
            links: Vec::new(),
            link_of: FxHashMap::default(),
            chains: FxHashMap::default(),
            statistics: Statistics::default(),
            shapes,
        })
    }

    pub fn tool(&self) -> Tool {
        self.tool
    }

    pub fn placed(&self, id: UnitId) -> &Placed {
        &self.units[id.0 as usize]
    }

    pub fn find(&self, address: Address) -> Option<(Item, u32)> {
        self.arenas.iter().find_map(|arena| arena.find(address))
    }

    /// The arena that units for `pc` go to, if there is one.
    pub fn arena_for(&self, pc: Address) -> Option<usize> {
        self.arenas.iter().position(|arena| arena.in_reach(pc) && arena.has_room())
    }

    pub fn unit_at(&self, pc: Address) -> Option<UnitId> {
        self.by_pc.get(&pc).copied()
    }

    /// Translates the unit at `pc` and what it leads to directly.
    pub fn translate(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
    ) -> std::result::Result<UnitId, TranslateError> {
        let started = Instant::now();
        let first = self.translate_one(pc, source, None)?;
        let mut next = vec![first];
        let mut budget = AHEAD;
        while let Some(id) = next.pop() {
            let exits: Vec<Address> =
                self.placed(id).unit.exits.iter().filter_map(|e| e.kind.target()).collect();
            for target in exits {
                if budget == 0 {
                    break;
                }
                if self.by_pc.contains_key(&target) || self.arena_for(target).is_none() {
                    continue;
                }
                budget -= 1;
                // Code ahead that cannot be translated is reported when it is reached.
                if let Ok(id) = self.translate_one(target, source, None) {
                    next.insert(0, id);
                }
            }
        }
        self.statistics.nanoseconds += started.elapsed().as_nanos() as u64;
        Ok(first)
    }

    /// A unit of a single instruction that nothing else ever enters.
    pub fn translate_single(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
    ) -> std::result::Result<UnitId, TranslateError> {
        self.translate_one(pc, source, Some(1))
    }

    fn translate_one(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
        at_most: Option<usize>,
    ) -> std::result::Result<UnitId, TranslateError> {
        let mut buffer = [0; 512];
        let length = source.fetch(pc, &mut buffer);
        let arena = self.arena_for(pc).expect("the caller made room");
        let trace_id = match self.tool {
            Tool::Trace => FIRST_UNIT_ID + self.shapes.read().expect("no panic").len() as u32,
            _ => 0,
        };
        let mut unit = translate(&Request {
            pc,
            bytes: &buffer[..length],
            at: self.arenas[arena].next(),
            tool: self.tool,
            at_most,
            call_class: calls::class,
            trace_id,
            verify: source.can_change_unseen(pc),
            gs_base_writable: crate::processor::gs_base_writable(),
            transactions: std::arch::is_x86_feature_detected!("rtm"),
        })?;
        let id = UnitId(self.units.len() as u32);
        let code = std::mem::take(&mut unit.code);
        self.statistics.units += 1;
        self.statistics.bytes += code.len() as u64;
        let at = self.arenas[arena].place(Item::Unit(id.0), &code);
        if self.tool == Tool::Trace {
            let mut shapes = self.shapes.write().expect("no panic");
            shapes.extend((1..=unit.instructions()).map(|executed| RecordShape {
                instructions: executed,
                slots: unit.slots[executed as usize],
            }));
        }
        self.units.push(Placed { unit, at, arena, dead: false, trace_id });
        if at_most.is_none() {
            self.enlist(id);
        }
        Ok(id)
    }

    /// Makes a new unit known and links it both ways.
    fn enlist(&mut self, id: UnitId) {
        let (pc, end) = (self.placed(id).unit.pc, self.placed(id).unit.end);
        self.by_pc.insert(pc, id);
        let mut page = page_of(pc);
        while page < end {
            self.by_page.entry(page).or_default().push(id);
            page += crate::memory::PAGE;
        }
        for (from, exit) in self.waiting.remove(&pc).unwrap_or_default() {
            self.link(from, exit, id);
        }
        for exit in 0..self.placed(id).unit.exits.len() as u32 {
            let ExitKind::Direct(target) = self.placed(id).unit.exits[exit as usize].kind else {
                continue;
            };
            match self.by_pc.get(&target) {
                Some(&to) => self.link(id, exit, to),
                None => self.waiting.entry(target).or_default().push((id, exit)),
            }
        }
    }

    /// Lets an exit go straight to a unit.
    pub fn link(&mut self, from: UnitId, exit: u32, to: UnitId) {
        let Placed { unit, at, arena, dead, .. } = &self.units[from.0 as usize];
        // A dead unit's code may have been overwritten with the way to its successor.
        if *dead {
            return;
        }
        let exit = &unit.exits[exit as usize];
        let stub = at + u64::from(exit.stub);
        let site = exit.site.map(|patch| at + u64::from(patch.0));
        let arena = *arena;
        let entry = self.placed(to).at;
        let entry = self.within_reach(arena, entry);
        self.patch(arena, stub + 2, entry);
        self.arenas[arena].write(stub, &[0x90]);
        if let Some(site) = site {
            self.patch(arena, site, entry);
        }
    }

    /// Makes the four-byte displacement at `place` lead to `to`.
    fn patch(&self, arena: usize, place: Address, to: Address) {
        let displacement = (to.wrapping_sub(place + 4)) as i64 as i32;
        self.arenas[arena].write(place, &displacement.to_le_bytes());
    }

    /// An address in or near the arena that leads to `to`, however far that is.
    fn within_reach(&mut self, arena: usize, to: Address) -> Address {
        let here = self.arenas[arena].base;
        if here.abs_diff(to) < (1 << 31) - (2 * crate::arena::ARENA_BYTES as u64) {
            return to;
        }
        // jmp [rip]; dq to
        let mut veneer = vec![0xff, 0x25, 0, 0, 0, 0];
        veneer.extend(to.to_le_bytes());
        self.arenas[arena].place(Item::Glue, &veneer)
    }

    /// Makes the unit at `pc` reachable by indirect branches.
    pub fn make_indirect(&mut self, pc: Address, id: UnitId) {
        if self.link_of.contains_key(&pc) {
            return;
        }
        let arena = self.placed(id).arena;
        let hash = pc as u16;
        let number = self.links.len() as u32;
        let previous = self.chains.get(&hash).and_then(|chain| chain.last().copied());
        let before = previous.map_or(0, |link| self.links[link as usize].key);
        let link = chain::link(self.arenas[arena].next(), before.wrapping_sub(pc));
        let at = self.arenas[arena].place(Item::Link(number), &link.code);
        self.patch(arena, at + u64::from(link.to_unit.0), self.placed(id).at);
        match previous {
            None => self.tables.write_u64(target_slot(hash), at),
            Some(previous) => {
                let before = &self.links[previous as usize];
                let (arena, stub) = (before.arena, before.at + u64::from(before.miss));
                let entry = self.within_reach(arena, at);
                self.patch(arena, stub + 2, entry);
                self.arenas[arena].write(stub, &[0x90]);
            }
        }
        self.chains.entry(hash).or_default().push(number);
        self.link_of.insert(pc, number);
        let difference = link.difference;
        self.links.push(LinkPlace { key: pc, at, arena, miss: link.miss, difference });
    }

    /// The application code of the newest units.
    pub fn newest(&self, count: u64) -> Vec<std::ops::Range<Address>> {
        let from = self.units.len().saturating_sub(count as usize);
        self.units[from..].iter().map(|placed| placed.unit.pc..placed.unit.end).collect()
    }

    /// Whether the unit is still there, that is, no flush came between.
    pub fn has(&self, id: UnitId) -> bool {
        (id.0 as usize) < self.units.len()
    }

    /// Whether a unit's entry traps because its application code has changed.
    pub fn is_dead(&self, id: UnitId) -> bool {
        self.placed(id).dead
    }

    /// Forgets all units that were read from a page.
    pub fn invalidate_page(&mut self, page: Address) {
        for id in self.by_page.remove(&page).unwrap_or_default() {
            self.invalidate(id);
        }
    }

    /// Forgets a unit whose application code has changed.
    pub fn invalidate_unit(&mut self, id: UnitId) {
        self.invalidate(id);
    }

    pub fn has_code_from(&self, page: Address) -> bool {
        self.by_page.contains_key(&page)
    }

    /// The pages from which code was translated, within a range.
    pub fn pages_within(&self, range: &std::ops::Range<Address>) -> Vec<Address> {
        self.by_page.keys().copied().filter(|page| range.contains(page)).collect()
    }

    fn invalidate(&mut self, id: UnitId) {
        let placed = &mut self.units[id.0 as usize];
        if placed.dead {
            return;
        }
        placed.dead = true;
        let (pc, at, arena) = (placed.unit.pc, placed.at, placed.arena);
        // Whoever still jumps here traps, and is sent on by `dead_entry`.
        self.arenas[arena].write(at, &[0xcc]);
        if self.by_pc.get(&pc) == Some(&id) {
            self.by_pc.remove(&pc);
        }
        self.disable_link(pc);
    }

    /// Makes an indirect entry match nothing, without breaking its chain: the link
    /// behind it counts from its address.
    fn disable_link(&mut self, pc: Address) {
        let Some(number) = self.link_of.remove(&pc) else { return };
        let key = NOWHERE | u64::from(number);
        self.links[number as usize].key = key;
        let chain = &self.chains[&(pc as u16)];
        let index = chain.iter().position(|&n| n == number).expect("a link is in its chain");
        let before = index.checked_sub(1).map_or(0, |i| self.links[chain[i] as usize].key);
        self.set_difference(number, before.wrapping_sub(key));
        if let Some(&next) = self.chains[&(pc as u16)].get(index + 1) {
            self.set_difference(next, key.wrapping_sub(self.links[next as usize].key));
        }
    }

    fn set_difference(&self, link: u32, difference: u64) {
        let link = &self.links[link as usize];
        let place = link.at + u64::from(link.difference);
        self.arenas[link.arena].write(place, &difference.to_le_bytes());
    }

    /// A dead unit's entry was reached: where application code goes on. Once its
    /// successor is translated, the entry leads there by itself.
    pub fn revive(&mut self, dead: UnitId, successor: UnitId) {
        let (at, arena) = (self.placed(dead).at, self.placed(dead).arena);
        let entry = self.placed(successor).at;
        let entry = self.within_reach(arena, entry);
        self.patch(arena, at + 1, entry);
        self.arenas[arena].write(at, &[0xe9]);
    }

    /// The target of an indirect branch that missed at the end of a chain, where rcx
    /// holds the difference to the last link's address.
    pub fn missed_target(&self, link: u32, rcx: u64) -> Address {
        rcx.wrapping_add(self.links[link as usize].key)
    }

    /// Whether `offset` within a link is its miss stub.
    pub fn is_miss(&self, link: u32, offset: u32) -> bool {
        self.links[link as usize].miss == offset
    }

    /// Empties the cache. Nothing may be executing in it.
    pub fn flush(&mut self) {
        for arena in &mut self.arenas {
            arena.clear();
        }
        self.units.clear();
        self.by_pc.clear();
        self.by_page.clear();
        self.waiting.clear();
        self.links.clear();
        self.link_of.clear();
        for hash in std::mem::take(&mut self.chains).into_keys() {
            self.tables.write_u64(target_slot(hash), 0);
        }
    }
}

/// Where in the tables the code address for targets with these low bits stands; the
/// tables begin with the call classes.
fn target_slot(hash: u16) -> usize {
    (TARGETS - CALL_CLASSES) as usize + usize::from(hash) * 8
}

impl From<TranslateError> for EngineError {
    fn from(error: TranslateError) -> EngineError {
        let (TranslateError::NoInstruction(pc)
        | TranslateError::OutOfReach(pc)
        | TranslateError::UnknownGsUse(pc)) = error;
        EngineError::UnknownInstruction { text: error.to_string(), bytes: String::new(), pc }
    }
}
