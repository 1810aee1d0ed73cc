//! The code cache: which application code has been translated, where it lies, and
//! how its pieces are linked. It knows bytes and addresses, no processes.

use crate::arena::{ARENA_BYTES, Arena, Item};
use crate::calls;
use crate::cpu::View;
use crate::directions::{Anew, Turned, Way};
use crate::error::{EngineError, Result};
use crate::frozen::Frozen;
use crate::image::Image;
use crate::memory::{Address, PAGE, page_of};
use crate::targets::Targets;
use iced_x86::{FlowControl, Instruction};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;
use std::time::Instant;
use why_trace::shape::Shared;
use why_translate::context::CallClass;
use why_translate::{Calls, ExitKind, Features, LeaveBefore, Request, Tool};
use why_translate::{TranslateError, Unit, chain, translate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u32);

pub struct Placed {
    pub unit: Unit,
    pub at: Address,
    /// The application code has changed: nothing may enter any more.
    dead: bool,
}

impl Placed {
    /// A unit of an archive.
    pub fn archived(unit: Unit, at: Address, dead: bool) -> Placed {
        Placed { unit, at, dead }
    }

    /// The pages that the unit was made from.
    pub fn pages(&self) -> Vec<Address> {
        let mut pages: Vec<Address> = Vec::new();
        for range in self.unit.ranges() {
            for page in (page_of(range.start)..range.end).step_by(PAGE as usize) {
                if !pages.contains(&page) {
                    pages.push(page);
                }
            }
        }
        pages
    }
}

/// An indirect target's entry.
struct LinkPlace {
    /// The application address it answers to.
    key: Address,
    at: Address,
    miss: u32,
    difference: u32,
    /// Its neighbours in the chain.
    previous: Option<u32>,
    next: Option<u32>,
}

/// Where an application address gets its bytes from.
pub trait CodeSource {
    /// Up to `buffer.len()` bytes of executable code from `pc` on.
    fn fetch(&mut self, pc: Address, buffer: &mut [u8]) -> usize;

    /// Whether the code there may change without the engine being told.
    fn can_change_unseen(&self, pc: Address) -> bool;

    /// The checksum of a page that holds code of a file.
    fn page_checksum(&mut self, page: Address) -> Option<u32>;
}

pub struct Code {
    tool: Tool,
    pub arenas: Vec<Arena>,
    pub targets: Targets,
    units: Vec<Placed>,
    by_pc: FxHashMap<Address, UnitId>,
    by_page: FxHashMap<Address, Vec<UnitId>>,
    /// Checksums of the pages of files that code was translated from.
    checksums: FxHashMap<Address, u32>,
    pub(crate) frozen: Vec<Frozen>,
    /// What is to be written to code that is mapped from archives.
    patches: Vec<(Address, Vec<u8>)>,
    /// Images whose translations are worth keeping.
    pub images: Vec<Image>,
    /// Where images begin whose archive could not be mapped.
    pub displaced: Vec<Address>,
    /// Exits that wait for a unit at this address.
    waiting: FxHashMap<Address, Vec<(UnitId, u32)>>,
    links: Vec<LinkPlace>,
    link_of: FxHashMap<Address, u32>,
    /// The last link of the chain of each entry.
    chains: FxHashMap<u16, u32>,
    pub statistics: Statistics,
    /// What each trace id stands for, for the readers of all processes that descend from
    /// one program by forks alone.
    pub shapes: Shared,
    /// Whether calls are logged or replayed.
    pub calls: Calls,
    /// The CPU that the application is shown.
    pub view: View,
    /// Addresses that no thread passes without the supervisor.
    pub watched: BTreeSet<Address>,
    /// Where units begin that are executed often when traced.
    longer: FxHashSet<Address>,
    /// Conditional branches at whose targets units go on: each in the unit at an address that has it
    /// so many times already.
    taken: FxHashSet<(Address, Address, usize)>,
    /// Where indirect branches mostly lead, each in such a unit.
    leads_to: FxHashMap<(Address, Address, usize), Address>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub units: u64,
    pub bytes: u64,
    pub nanoseconds: u64,
    /// Units taken from archives.
    pub thawed: u64,
}

/// Units translated ahead of need at one stop.
const AHEAD: usize = 24;
/// When traced, of which each takes longer to make.
const TRACED_AHEAD: usize = 8;

/// Jumps shorter than this have a displacement of 32 bits, wherever in their arenas
/// they begin and end.
pub(crate) const JUMP_REACH: u64 = (1 << 31) - 2 * ARENA_BYTES as u64;

/// With a link's number, the address it answers to when invalidated: nothing can
/// be there.
const NOWHERE: Address = 1 << 63;

impl Code {
    pub fn new(tool: Tool, shapes: Shared) -> Result<Code> {
        Ok(Code {
            tool,
            arenas: Vec::new(),
            targets: Targets::small()?,
            units: Vec::new(),
            by_pc: FxHashMap::default(),
            by_page: FxHashMap::default(),
            checksums: FxHashMap::default(),
            frozen: Vec::new(),
            patches: Vec::new(),
            images: Vec::new(),
            displaced: Vec::new(),
            waiting: FxHashMap::default(),
            links: Vec::new(),
            link_of: FxHashMap::default(),
            chains: FxHashMap::default(),
            statistics: Statistics::default(),
            shapes,
            calls: Calls::Made,
            view: View::native(),
            watched: BTreeSet::new(),
            longer: FxHashSet::default(),
            taken: FxHashSet::default(),
            leads_to: FxHashMap::default(),
        })
    }

    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// How calls are made.
    fn call_class(&self) -> fn(u32) -> CallClass {
        match self.calls {
            Calls::Made => calls::class,
            Calls::NotYetLogged => calls::unrecorded_class,
            Calls::Logged | Calls::Replayed => calls::recorded_class,
        }
    }

    /// The classes of all calls, as translated code looks them up.
    pub fn call_classes(&self) -> Vec<u8> {
        calls::class_table(self.call_class())
    }

    pub fn placed(&self, id: UnitId) -> &Placed {
        &self.units[id.0 as usize]
    }

    /// What lies at a cache address, and the offset within it.
    pub fn find(&mut self, address: Address) -> Option<(Item, u32)> {
        let found = self.arenas.iter().find_map(|arena| arena.find(address));
        found.or_else(|| self.find_frozen(address))
    }

    /// All of the cache in the target.
    pub fn ranges(&self) -> Vec<std::ops::Range<Address>> {
        let frozen = self.frozen.iter().map(Frozen::range);
        self.arenas.iter().map(Arena::range).chain(frozen).collect()
    }

    /// The arena that units for `pc` go to, if there is one.
    pub fn arena_for(&self, pc: Address) -> Option<usize> {
        self.arenas.iter().position(|arena| arena.in_reach(pc) && arena.has_room())
    }

    /// The cache address of the unit at `pc`.
    pub fn entry(&self, pc: Address) -> Option<Address> {
        match self.by_pc.get(&pc) {
            Some(&id) => Some(self.placed(id).at),
            None => self.frozen_entry(pc),
        }
    }

    /// Translates the unit at `pc` and what it leads to directly. When traced, also what its calls
    /// return to: most of them do, and each would be a stop.
    pub fn translate(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
    ) -> std::result::Result<Address, TranslateError> {
        let started = Instant::now();
        let first = self.translate_one(pc, source, None, false)?;
        let mut next = VecDeque::from([first]);
        let mut budget = if self.tool.traces() { TRACED_AHEAD } else { AHEAD };
        while let Some(id) = next.pop_front() {
            let unit = &self.placed(id).unit;
            let exits: Vec<Address> = unit.exits.iter().filter_map(|e| e.kind.target()).collect();
            let returns = returns(unit);
            for target in exits.iter().chain(&returns).copied() {
                if budget == 0 {
                    break;
                }
                if self.entry(target).is_some() || self.arena_for(target).is_none() {
                    continue;
                }
                budget -= 1;
                // Code ahead that cannot be translated is reported when it is reached.
                if let Ok(id) = self.translate_one(target, source, None, false) {
                    next.push_back(id);
                }
            }
            for target in returns {
                if let Some(entry) = self.entry(target).filter(|_| !self.targets_too_small(1)) {
                    self.make_indirect(target, entry);
                }
            }
        }
        self.statistics.nanoseconds += started.elapsed().as_nanos() as u64;
        Ok(self.placed(first).at)
    }

    /// A unit of at most so many instructions that nothing else ever enters, and that is
    /// linked to nothing; `plain` if no instruction is kept from it.
    pub fn translate_few(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
        at_most: usize,
        plain: bool,
    ) -> std::result::Result<Address, TranslateError> {
        let id = self.translate_one(pc, source, Some(at_most), plain)?;
        Ok(self.placed(id).at)
    }

    fn translate_one(
        &mut self,
        pc: Address,
        source: &mut dyn CodeSource,
        at_most: Option<usize>,
        plain: bool,
    ) -> std::result::Result<UnitId, TranslateError> {
        let arena = self.arena_for(pc).expect("the caller made room");
        let request = Request {
            pc,
            at: self.arenas[arena].next(),
            tool: self.tool,
            at_most,
            call_class: self.call_class(),
            calls: self.calls,
            leave_before: match self.calls {
                _ if plain => LeaveBefore::Nothing,
                Calls::NotYetLogged if self.view.limited => LeaveBefore::Questions,
                Calls::Made | Calls::NotYetLogged => LeaveBefore::Nothing,
                Calls::Logged | Calls::Replayed => LeaveBefore::Varying,
            },
            shown: self.view.expected,
            expected: if plain { Features::ALL } else { self.view.noticed() },
            limit_xsave: self.view.limited,
            longer: self.longer.contains(&pc),
            taken: &|branch, times| self.taken.contains(&(pc, branch, times)),
            leads_to: &|branch, times| self.leads_to.get(&(pc, branch, times)).copied(),
            shapes: &self.shapes,
            verify: source.can_change_unseen(pc),
            gs_base_writable: crate::processor::gs_base_writable(),
            transactions: std::arch::is_x86_feature_detected!("rtm"),
        };
        let mut unit = if at_most.is_none() && self.watched.contains(&pc) {
            Unit::stop_before(pc)
        } else {
            translate(&request, &mut |at, buffer| {
                // A unit is either compared when entered or not.
                if source.can_change_unseen(at) != request.verify {
                    return 0;
                }
                // It ends before a watched address.
                let first = if at == pc { at + 1 } else { at };
                let watched = self.watched.range(first..at + buffer.len() as u64).next();
                let room = watched.map_or(buffer.len(), |watched| (watched - at) as usize);
                source.fetch(at, &mut buffer[..room])
            })?
        };
        let id = UnitId(self.units.len() as u32);
        let code = std::mem::take(&mut unit.code);
        self.statistics.units += 1;
        self.statistics.bytes += code.len() as u64;
        let at = self.arenas[arena].place(Item::Unit(id.0), &code);
        self.units.push(Placed { unit, at, dead: false });
        if at_most.is_none() {
            self.enlist(id, source);
        }
        Ok(id)
    }

    /// Lets no thread pass these addresses without the supervisor.
    pub fn watch(&mut self, addresses: &[Address]) {
        for &address in addresses {
            if self.watched.insert(address) {
                // What is kept from earlier runs passes it.
                self.invalidate_frozen(&(address..address.saturating_add(1)));
                self.invalidate_page(page_of(address));
            }
        }
    }

    /// What was watched there is gone, and its units with it.
    pub fn unwatch(&mut self, range: &std::ops::Range<Address>) {
        self.watched.retain(|address| !range.contains(address));
    }

    pub fn is_watched_within(&self, range: &std::ops::Range<Address>) -> bool {
        self.watched.range(range.clone()).next().is_some()
    }

    pub fn is_watched(&self, pc: Address) -> bool {
        self.watched.contains(&pc)
    }

    /// Makes a new unit known and links it both ways.
    fn enlist(&mut self, id: UnitId, source: &mut dyn CodeSource) {
        let pc = self.placed(id).unit.pc;
        self.by_pc.insert(pc, id);
        for page in self.placed(id).pages() {
            self.by_page.entry(page).or_default().push(id);
            if !self.checksums.contains_key(&page)
                && let Some(checksum) = source.page_checksum(page)
            {
                self.checksums.insert(page, checksum);
            }
        }
        for (from, exit) in self.waiting.remove(&pc).unwrap_or_default() {
            self.link(from, exit, self.placed(id).at);
        }
        for exit in 0..self.placed(id).unit.exits.len() as u32 {
            let ExitKind::Direct(target) = self.placed(id).unit.exits[exit as usize].kind else {
                continue;
            };
            match self.entry(target) {
                Some(to) => self.link(id, exit, to),
                None => self.waiting.entry(target).or_default().push((id, exit)),
            }
        }
    }

    /// Lets an exit go straight to a unit.
    pub fn link(&mut self, from: UnitId, exit: u32, to: Address) {
        let Placed { unit, at, dead, .. } = &self.units[from.0 as usize];
        // A dead unit's code may have been overwritten with the way to its successor.
        if *dead {
            return;
        }
        let exit = &unit.exits[exit as usize];
        let stub = at + u64::from(exit.stub);
        let site = exit.site.map(|patch| at + u64::from(patch.0));
        let entry = self.within_reach(stub, to);
        self.patch(stub + 2, entry);
        self.write(stub, &[0x90]);
        if let Some(site) = site {
            self.patch(site, entry);
        }
    }

    /// Writes to the cache: at once to an arena, which the target shares; through
    /// [`Code::take_patches`] to an archive's code.
    fn write(&mut self, at: Address, bytes: &[u8]) {
        match self.arenas.iter().find(|arena| arena.range().contains(&at)) {
            Some(arena) => arena.write(at, bytes),
            None => self.patches.push((at, bytes.to_vec())),
        }
    }

    /// What must be written to the target before it goes on.
    pub fn take_patches(&mut self) -> Vec<(Address, Vec<u8>)> {
        std::mem::take(&mut self.patches)
    }

    /// Makes the four-byte displacement at `place` lead to `to`.
    fn patch(&mut self, place: Address, to: Address) {
        let displacement = (to.wrapping_sub(place + 4)) as i64 as i32;
        self.write(place, &displacement.to_le_bytes());
    }

    /// An address that a jump at `place` can reach and that leads to `to`.
    fn within_reach(&mut self, place: Address, to: Address) -> Address {
        if place.abs_diff(to) < JUMP_REACH {
            return to;
        }
        let near = self.arenas.iter().position(|arena| arena.base.abs_diff(place) < JUMP_REACH);
        let arena = near.expect("code lies in an arena or was placed near one");
        // jmp [rip]; dq to
        let mut veneer = vec![0xff, 0x25, 0, 0, 0, 0];
        veneer.extend(to.to_le_bytes());
        self.arenas[arena].place(Item::Glue, &veneer)
    }

    /// Makes the unit at `pc`, whose entry this is, reachable by indirect branches.
    pub fn make_indirect(&mut self, pc: Address, entry: Address) {
        if self.link_of.contains_key(&pc) {
            return;
        }
        let near = |arena: &Arena| arena.base.abs_diff(entry) < JUMP_REACH && arena.has_room();
        let Some(arena) = self.arenas.iter().position(near) else {
            return;
        };
        let link = chain::link(self.arenas[arena].next(), 0);
        let item = Item::Link(self.links.len() as u32);
        let at = self.arenas[arena].place(item, &link.code);
        self.patch(at + u64::from(link.to_unit.0), entry);
        self.add_link(pc, at);
    }

    /// Adds a link whose code is in place.
    fn add_link(&mut self, pc: Address, at: Address) {
        let number = self.links.len() as u32;
        let &chain::Link { miss, difference, .. } = link_layout();
        let (previous, next) = (None, None);
        self.links.push(LinkPlace { key: pc, at, miss, difference, previous, next });
        self.append_to_chain(number);
        self.link_of.insert(pc, number);
    }

    /// Makes a link the last one of the chain of its address.
    fn append_to_chain(&mut self, number: u32) {
        let LinkPlace { key, at, .. } = self.links[number as usize];
        let hash = self.targets.hash(key);
        let previous = self.chains.insert(hash, number);
        self.links[number as usize].previous = previous;
        self.links[number as usize].next = None;
        let before = previous.map_or(0, |link| self.links[link as usize].key);
        self.set_difference(number, before.wrapping_sub(key));
        let Some(previous) = previous else {
            return self.targets.set(hash, at);
        };
        let before = &mut self.links[previous as usize];
        before.next = Some(number);
        let stub = before.at + u64::from(before.miss);
        let entry = self.within_reach(stub, at);
        self.patch(stub + 2, entry);
        self.write(stub, &[0x90]);
    }

    /// Goes on with another table. Nothing may be executing in the cache.
    pub(crate) fn use_targets(&mut self, targets: Targets) {
        self.targets = targets;
        self.chains.clear();
        for number in 0..self.links.len() {
            let LinkPlace { at, miss, .. } = self.links[number];
            self.write(at + u64::from(miss), &[0xcc]);
        }
        let live: Vec<u32> = self.link_of.values().copied().collect();
        for number in live {
            self.append_to_chain(number);
        }
    }

    /// Whether more links would make chains too long.
    pub(crate) fn targets_too_small(&self, more: usize) -> bool {
        self.targets.is_too_small_for(self.links.len() + more)
    }

    /// Prepares for so many links to units near `pc`.
    pub(crate) fn reserve_links(&mut self, count: usize, pc: Address) {
        self.links.reserve(count);
        self.link_of.reserve(count);
        self.chains.reserve(count);
        if let Some(arena) = self.arena_for(pc) {
            self.arenas[arena].expect(count * link_layout().code.len().next_multiple_of(16));
        }
    }

    /// Code was mapped anew: what was to be written there is of no concern.
    pub(crate) fn forget_patches(&mut self, range: &std::ops::Range<Address>) {
        self.patches.retain(|(at, _)| !range.contains(at));
    }

    /// Replaces code that was mapped from an archive.
    pub(crate) fn patch_frozen(&mut self, at: Address, code: Vec<u8>) {
        self.patches.push((at, code));
    }

    pub(crate) fn add_placed(&mut self, placed: Placed) -> UnitId {
        let id = UnitId(self.units.len() as u32);
        self.units.push(placed);
        id
    }

    /// The live units that were translated from a range, archived ones apart.
    pub(crate) fn units_within(&self, range: &std::ops::Range<Address>) -> Vec<UnitId> {
        self.by_pc.iter().filter(|(pc, _)| range.contains(pc)).map(|(_, &id)| id).collect()
    }

    pub(crate) fn checksums_within(
        &self,
        range: &std::ops::Range<Address>,
        mut each: impl FnMut(Address, u32),
    ) {
        for (&page, &checksum) in self.checksums.iter().filter(|(page, _)| range.contains(page)) {
            each(page, checksum);
        }
    }

    pub(crate) fn indirect_targets(&self, range: &std::ops::Range<Address>) -> Vec<Address> {
        self.link_of.keys().copied().filter(|pc| range.contains(pc)).collect()
    }

    /// A unit's code up to its literals; whether its exits are linked is open.
    pub(crate) fn bytes_of(&self, id: UnitId) -> Vec<u8> {
        let placed = self.placed(id);
        let mut bytes = vec![0; placed.unit.end as usize];
        match self.arenas.iter().find(|arena| arena.range().contains(&placed.at)) {
            Some(arena) => arena.read(placed.at, &mut bytes),
            None => self.read_frozen(placed.at, &mut bytes),
        }
        bytes
    }

    /// The application code of the newest units.
    pub fn newest(&self, count: u64) -> Vec<std::ops::Range<Address>> {
        let from = self.units.len().saturating_sub(count as usize);
        self.units[from..].iter().flat_map(|placed| placed.unit.ranges()).collect()
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
        self.checksums.remove(&page);
        for id in self.by_page.remove(&page).unwrap_or_default() {
            self.invalidate(id);
        }
    }

    /// Forgets a unit whose application code has changed.
    pub fn invalidate_unit(&mut self, id: UnitId) {
        self.invalidate(id);
    }

    /// A unit is executed often and made anew; but not if this is the next instruction of a thread,
    /// and at the unit's entry.
    pub fn make_anew(
        &mut self,
        Anew { unit, turned }: Anew,
        next: Address,
        source: &mut dyn CodeSource,
    ) {
        /// So much may be overwritten there.
        const JUMP: u64 = 5;
        self.longer.insert(unit);
        match turned {
            Some(Turned { branch, times, way: Way::Taken }) => {
                self.taken.insert((unit, branch, times));
            }
            Some(Turned { branch, times, way: Way::NotTaken }) => {
                self.taken.remove(&(unit, branch, times));
            }
            Some(Turned { branch, times, way: Way::To(target) }) => {
                self.leads_to.insert((unit, branch, times), target);
            }
            None => {}
        }
        let entry = |id: &UnitId| self.placed(*id).at;
        let is_free = |id: &UnitId| !(entry(id)..entry(id) + JUMP).contains(&next);
        let Some(id) = self.by_pc.get(&unit).copied().filter(is_free) else {
            return;
        };
        let was_indirect = self.link_of.contains_key(&unit);
        self.invalidate(id);
        // If this cannot be done now, it is when somebody comes there.
        if self.arena_for(unit).is_some()
            && let Ok(entry) = self.translate(unit, source)
        {
            self.revive(id, entry);
            if was_indirect {
                self.make_indirect(unit, entry);
            }
        }
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
        let (pc, at) = (placed.unit.pc, placed.at);
        // Whoever still jumps here traps, and is sent on by `entered_dead`.
        self.write(at, &[0xcc]);
        if self.by_pc.get(&pc) == Some(&id) {
            self.by_pc.remove(&pc);
        }
        self.disable_link(pc);
    }

    /// Makes an indirect entry match nothing, without breaking its chain: the link
    /// behind it counts from its address.
    pub(crate) fn mark_dead(&mut self, id: UnitId) {
        self.units[id.0 as usize].dead = true;
    }

    pub(crate) fn disable_link(&mut self, pc: Address) {
        let Some(number) = self.link_of.remove(&pc) else {
            return;
        };
        let key = NOWHERE | u64::from(number);
        self.links[number as usize].key = key;
        let LinkPlace { previous, next, .. } = self.links[number as usize];
        let before = previous.map_or(0, |link| self.links[link as usize].key);
        self.set_difference(number, before.wrapping_sub(key));
        if let Some(next) = next {
            self.set_difference(next, key.wrapping_sub(self.links[next as usize].key));
        }
    }

    fn set_difference(&mut self, link: u32, difference: u64) {
        let link = &self.links[link as usize];
        let place = link.at + u64::from(link.difference);
        self.write(place, &difference.to_le_bytes());
    }

    /// A dead unit's entry was reached: where application code goes on. Once its
    /// successor is translated, the entry leads there by itself.
    pub fn revive(&mut self, dead: UnitId, entry: Address) {
        let at = self.placed(dead).at;
        let entry = self.within_reach(at, entry);
        self.patch(at + 1, entry);
        self.write(at, &[0xe9]);
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

    /// Empties the cache to make calls in another way, and watches nothing. What was mapped
    /// of archives is given up, too: where it is.
    pub fn start_afresh(&mut self, calls: Calls) -> Vec<std::ops::Range<Address>> {
        self.calls = calls;
        self.watched.clear();
        self.images.clear();
        self.give_up()
    }

    /// Empties the cache to go on with another tool. What was mapped of archives is given
    /// up, too: where it is.
    pub fn change_tool(&mut self, tool: Tool) -> Vec<std::ops::Range<Address>> {
        self.tool = tool;
        self.give_up()
    }

    fn give_up(&mut self) -> Vec<std::ops::Range<Address>> {
        self.flush();
        self.displaced.clear();
        self.frozen.drain(..).map(|frozen| frozen.range()).collect()
    }

    /// Empties the cache. Nothing may be executing in it.
    pub fn flush(&mut self) {
        for arena in &mut self.arenas {
            arena.clear();
        }
        self.units.clear();
        self.by_pc.clear();
        self.by_page.clear();
        self.abandon_frozen();
        self.patches.clear();
        self.waiting.clear();
        self.links.clear();
        self.link_of.clear();
        for hash in std::mem::take(&mut self.chains).into_keys() {
            self.targets.set(hash, 0);
        }
    }
}

/// Where the calls of a traced unit return to, unless it goes on there itself.
fn returns(unit: &Unit) -> Vec<Address> {
    let Some(traced) = &unit.traced else {
        return Vec::new();
    };
    let instructions = &traced.shape.instructions;
    let is_call = |insn: &&Instruction| {
        insn.is_call_near() || insn.flow_control() == FlowControl::IndirectCall
    };
    let returns = instructions.iter().filter(is_call).map(Instruction::next_ip);
    returns.filter(|back| instructions.iter().all(|insn| insn.ip() != *back)).collect()
}

/// Links are all alike, wherever they lie.
fn link_layout() -> &'static chain::Link {
    static LAYOUT: OnceLock<chain::Link> = OnceLock::new();
    LAYOUT.get_or_init(|| chain::link(0, 0))
}

impl From<TranslateError> for EngineError {
    fn from(error: TranslateError) -> EngineError {
        let (TranslateError::NoInstruction(pc)
        | TranslateError::Unexpected(pc)
        | TranslateError::OutOfReach(pc)
        | TranslateError::UnknownGsUse(pc)) = error;
        EngineError::UnknownInstruction { text: error.to_string(), bytes: String::new(), pc }
    }
}
