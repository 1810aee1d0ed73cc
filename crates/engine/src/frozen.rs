//! Archived translations in the code cache: mapped when their image is, and all
//! translations of an image frozen into an archive when the cache is given up.
//!
//! An archive's code is mapped from its file, always at the same distance from the
//! image, so that nothing in it depends on where the image lies but the literals.

use crate::archive::{Archive, Contents, Section};
use crate::arena::Item;
use crate::code::{Code, JUMP_REACH, Placed, UnitId};
use crate::description;
use crate::image::Image;
use crate::memory::{Address, PAGE, page_of};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Range;
use std::rc::Rc;
use why_translate::ExitKind;

/// An archive's code in the target.
#[derive(Clone)]
pub struct Frozen {
    pub image: Image,
    archive: Rc<Archive>,
    at: Address,
    /// Units whose description has been needed.
    materialised: FxHashMap<u32, UnitId>,
    /// The image has been unmapped or changed.
    pub dead: bool,
    /// Nothing leads there any more.
    abandoned: bool,
}

/// So much news, in units and in thousandths, is surely worth a new archive.
const NEWS: (usize, usize) = (1, 4);

/// Every unit begins at a multiple of this, as in an arena.
const ALIGNMENT: usize = 16;

impl Frozen {
    pub fn range(&self) -> Range<Address> {
        self.at..self.at + self.archive.mapped_length()
    }

    fn unit_at(&self, pc: Address) -> Option<Address> {
        let offset = self.image.offset(pc)?;
        let units = self.archive.records::<3>(Section::Units);
        let [address, code, _] = units.get(units.up_to(0, offset).checked_sub(1)?);
        (address == offset).then(|| self.at + u64::from(code))
    }
}

impl Code {
    /// Whether an archived unit begins at `pc`: its entry.
    pub(crate) fn frozen_entry(&self, pc: Address) -> Option<Address> {
        let frozen = self.frozen.iter().find(|f| !f.dead && f.image.range.contains(&pc))?;
        frozen.unit_at(pc)
    }

    /// Where an archive's code goes; none if the place is taken as far as is known. Code
    /// that is dead leaves its place to the same code, because something may lead there
    /// still, or, when nothing does, to any other.
    pub fn place_of(&self, image: &Image, archive: &Rc<Archive>) -> Option<Placement> {
        let at = archive.at.wrapping_add(image.bias.wrapping_sub(archive.bias));
        let range = at..at.checked_add(archive.mapped_length())?;
        // Addresses below 2 GiB are encoded in shorter instructions: such images do
        // not move.
        if image.bias != archive.bias && archive.bias < 1 << 31 {
            return None;
        }
        let arena = &self.arenas[self.arena_for(image.range.start)?];
        let in_reach = arena.base.abs_diff(range.start).max(arena.base.abs_diff(range.end));
        if in_reach >= JUMP_REACH {
            return None;
        }
        let mut before = self.frozen.iter().filter(|f| overlap(&f.range(), &range));
        let replaces = match (before.next(), before.next()) {
            (None, _) => false,
            (Some(only), None) if only.dead && only.range() == range => {
                only.abandoned || Rc::ptr_eq(&only.archive, archive)
            }
            _ => return None,
        };
        Some(Placement { at, replaces })
    }

    /// An archive's code has been mapped for an image.
    pub fn thaw(&mut self, image: &Image, archive: Rc<Archive>, at: Address) {
        let links = archive.records::<2>(Section::Links);
        self.reserve_links(links.len(), image.range.start);
        for [address, code] in links.iter() {
            self.make_indirect(image.address(address), at + u64::from(code));
        }
        self.statistics.bytes += archive.section(Section::Code).len() as u64;
        self.statistics.thawed += archive.records::<3>(Section::Units).len() as u64;
        let image = image.clone();
        let materialised = FxHashMap::default();
        let frozen = Frozen { image, archive, at, materialised, dead: false, abandoned: false };
        self.forget_patches(&frozen.range());
        self.frozen.retain(|f| f.range() != frozen.range());
        self.frozen.push(frozen);
    }

    /// Code at this address was mapped from an archive.
    pub(crate) fn find_frozen(&mut self, address: Address) -> Option<(Item, u32)> {
        let number = self.frozen.iter().position(|f| f.range().contains(&address))?;
        let frozen = &self.frozen[number];
        let offset = (address - frozen.at) as u32;
        let units = frozen.archive.records::<3>(Section::Units);
        let index = units.up_to(1, offset).checked_sub(1)?;
        let [_, start, _] = units.get(index);
        Some((Item::Unit(self.materialise(number, index as u32).0), offset - start))
    }

    /// An archived unit's code as it was in the archive.
    pub(crate) fn read_frozen(&self, at: Address, buffer: &mut [u8]) {
        let frozen = self.frozen.iter().find(|f| f.range().contains(&at)).expect("a known unit");
        let start = (at - frozen.at) as usize;
        buffer.copy_from_slice(&frozen.archive.section(Section::Code)[start..start + buffer.len()]);
    }

    /// Reads the description of an archived unit.
    fn materialise(&mut self, number: usize, index: u32) -> UnitId {
        let frozen = &self.frozen[number];
        if let Some(&id) = frozen.materialised.get(&index) {
            return id;
        }
        let units = frozen.archive.records::<3>(Section::Units);
        let [_, start, description] = units.get(index as usize);
        let bytes = &frozen.archive.section(Section::Descriptions)[description as usize..];
        let unit = description::read(bytes, frozen.image.bias).expect("the archive was checked");
        let placed = Placed::archived(unit, frozen.at + u64::from(start), frozen.dead);
        let id = self.add_placed(placed);
        self.frozen[number].materialised.insert(index, id);
        id
    }

    /// Gives up the archived code of images that touch a range.
    pub(crate) fn invalidate_frozen(&mut self, range: &Range<Address>) {
        for number in 0..self.frozen.len() {
            let frozen = &mut self.frozen[number];
            if frozen.dead || !overlap(&frozen.image.range, range) {
                continue;
            }
            frozen.dead = true;
            let frozen = &self.frozen[number];
            // Whoever still jumps to a unit traps.
            let mut code = frozen.archive.section(Section::Code).to_vec();
            for [_, start, _] in frozen.archive.records::<3>(Section::Units).iter() {
                code[start as usize] = 0xcc;
            }
            let addresses = self.indirect_targets(&frozen.image.range);
            let ids: Vec<UnitId> = frozen.materialised.values().copied().collect();
            self.patch_frozen(frozen.at, code);
            for id in ids {
                self.mark_dead(id);
            }
            for pc in addresses {
                self.disable_link(pc);
            }
        }
    }

    /// Nothing leads to archived code any more.
    pub(crate) fn abandon_frozen(&mut self) {
        for frozen in &mut self.frozen {
            frozen.dead = true;
            frozen.abandoned = true;
            frozen.materialised.clear();
        }
    }

    /// All translations of an image, as an archive; none if it would hold no news.
    pub fn freeze(&mut self, image: &Image) -> Option<Contents> {
        let number = self.frozen.iter().position(|f| !f.dead && f.image.range == image.range);
        let archived =
            number.map_or(0, |n| self.frozen[n].archive.records::<3>(Section::Units).len());
        let fresh = self.units_within(&image.range);
        // The chance grows with the news, so that a unit which is missing in every run gets
        // there in the end, and one which is missing now and then costs little.
        let worth = NEWS.0 + archived * NEWS.1 / 1000;
        if fresh.len() <= RandomState::new().hash_one(0) as usize % worth {
            return None;
        }
        if number.is_none() && self.displaced.contains(&image.range.start) {
            // There is an archive that may be of more use elsewhere.
            return None;
        }
        let mut checksums: BTreeMap<u32, u32> = BTreeMap::new();
        let mut ids = fresh;
        if let Some(number) = number {
            ids.extend((0..archived as u32).map(|index| self.materialise(number, index)));
            let pages = self.frozen[number].archive.records::<2>(Section::Pages);
            checksums.extend(pages.iter().map(|[page, checksum]| (page, checksum)));
        }
        self.checksums_within(&image.range, |page, checksum| {
            if let Some(offset) = image.offset(page) {
                checksums.insert(offset, checksum);
            }
        });
        ids.retain(|&id| {
            let placed = self.placed(id);
            let known = |page| image.offset(page).is_some_and(|o| checksums.contains_key(&o));
            // The next program to be recorded may not know yet what it uses.
            !placed.unit.beyond
                && image.range.contains(&placed.unit.pc)
                && placed.pages().into_iter().all(known)
        });
        ids.sort_by_key(|&id| self.placed(id).unit.pc);
        ids.dedup_by_key(|&mut id| self.placed(id).unit.pc);
        if ids.is_empty() {
            return None;
        }
        Freezer::new(self, image, ids).run(&checksums)
    }
}

/// Where an archive's code is to be mapped.
pub struct Placement {
    pub at: Address,
    /// Over code that is of no use any more.
    pub replaces: bool,
}

fn overlap(one: &Range<Address>, other: &Range<Address>) -> bool {
    one.start < other.end && other.start < one.end
}

/// A place for an image's code that is likely to be free whatever else is loaded, and
/// the same in every run: images of the same program must not want the same one.
fn choose_place(image: &Image, length: u64, taken: &[Range<Address>]) -> Address {
    const NEAREST: u64 = 128 << 20;
    const SPREAD: u64 = 768 << 20;
    // Below 2 GiB, what is below may not be there, and a heap grows above.
    let low = image.range.start < 1 << 31;
    let mut hasher = FxHasher::default();
    image.identity.hash(&mut hasher);
    image.start.hash(&mut hasher);
    let place = |hash: u64| {
        let distance = NEAREST + hash % SPREAD;
        let at = if low {
            image.range.end + 3 * NEAREST + distance
        } else {
            image.range.start - distance - length
        };
        page_of(at)
    };
    let mut places = (0..16).map(|_| {
        0u8.hash(&mut hasher);
        place(hasher.finish())
    });
    let first = places.next().expect("sixteen");
    let free = |at: &Address| taken.iter().all(|range| !overlap(range, &(*at..at + length)));
    std::iter::once(first).chain(places).find(free).unwrap_or(first)
}

/// Lays the units of an image out anew, one behind the other.
struct Freezer<'a> {
    code: &'a Code,
    image: &'a Image,
    ids: Vec<UnitId>,
    /// Where the code will lie.
    at: Address,
    bytes: Vec<u8>,
    /// Where units begin in the code.
    entries: FxHashMap<Address, u32>,
    literals: Pool,
}

/// Literals, each once, and the displacements that are to lead to them.
#[derive(Default)]
struct Pool {
    values: Vec<u8>,
    places: FxHashMap<u64, u32>,
    users: Vec<(u32, u32)>,
}

impl Pool {
    fn add(&mut self, user: u32, value: u64) {
        let next = self.values.len() as u32;
        let place = *self.places.entry(value).or_insert(next);
        if place == next {
            self.values.extend(value.to_le_bytes());
        }
        self.users.push((user, place));
    }
}

impl<'a> Freezer<'a> {
    fn new(code: &'a Code, image: &'a Image, ids: Vec<UnitId>) -> Self {
        let (bytes, entries, literals) = Default::default();
        let taken: Vec<_> = code
            .frozen
            .iter()
            .filter(|f| f.image.range != image.range)
            .map(Frozen::range)
            .chain(code.arenas.iter().map(|arena| arena.range()))
            .chain(code.images.iter().map(|image| image.range.clone()))
            .collect();
        // Literals are a small part of the code.
        let length = ids.iter().map(|&id| u64::from(code.placed(id).unit.end)).sum::<u64>() * 2;
        let at = choose_place(image, page_of(length) + PAGE, &taken);
        Freezer { code, image, ids, at, bytes, entries, literals }
    }

    /// None if the code would be too far from what it addresses.
    fn run(mut self, checksums: &BTreeMap<u32, u32>) -> Option<Contents> {
        let (mut units, mut descriptions) = (Vec::new(), Vec::new());
        for id in self.ids.clone() {
            let start = self.copy(id)?;
            let unit = &self.code.placed(id).unit;
            self.entries.insert(unit.pc, start);
            push(&mut units, &[self.image.offset(unit.pc)?, start, descriptions.len() as u32]);
            description::write(unit, self.image.bias, &mut descriptions);
        }
        for id in self.ids.clone() {
            self.link(id);
        }
        let literals_at = self.bytes.len().next_multiple_of(PAGE as usize) as u32;
        for (user, place) in std::mem::take(&mut self.literals.users) {
            self.patch(user, literals_at + place);
        }
        let mut pages = Vec::new();
        for (&page, &checksum) in checksums {
            push(&mut pages, &[page, checksum]);
        }
        let links = self.links();
        Some(Contents {
            bias: self.image.bias,
            at: self.at,
            settled: self.image.settled,
            sections: [pages, units, links, self.bytes, self.literals.values, descriptions],
        })
    }

    /// Copies a unit's code to its new place.
    fn copy(&mut self, id: UnitId) -> Option<u32> {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0xcc);
        let Placed { unit, at, .. } = self.code.placed(id);
        let start = self.bytes.len();
        self.bytes.extend(self.code.bytes_of(id));
        let moved = at.wrapping_sub(self.at + start as u64) as i64;
        for &offset in &unit.displacements {
            let place = start + offset as usize..start + offset as usize + 4;
            let old = i32::from_le_bytes(self.bytes[place.clone()].try_into().unwrap());
            let new = i32::try_from(i64::from(old) + moved).ok()?;
            self.bytes[place].copy_from_slice(&new.to_le_bytes());
        }
        for literal in &unit.literals {
            self.literals.add(start as u32 + literal.user.0, literal.value);
        }
        Some(start as u32)
    }

    /// Links a unit's exits within the image, and undoes all other links.
    fn link(&mut self, id: UnitId) {
        let unit = &self.code.placed(id).unit;
        let start = self.entries[&unit.pc];
        for exit in &unit.exits {
            let ExitKind::Direct(target) = exit.kind else {
                continue;
            };
            let stub = start + exit.stub;
            let target = self.entries.get(&target).copied();
            self.bytes[stub as usize] = if target.is_some() { 0x90 } else { 0xcc };
            let target = target.unwrap_or(stub);
            self.patch(stub + 2, target);
            if let Some(site) = exit.site {
                self.patch(start + site.0, target);
            }
        }
    }

    fn patch(&mut self, place: u32, to: u32) {
        let displacement = to as i32 - (place as i32 + 4);
        self.bytes[place as usize..place as usize + 4].copy_from_slice(&displacement.to_le_bytes());
    }

    /// The units that indirect branches lead to.
    fn links(&self) -> Vec<u8> {
        let mut links = Vec::new();
        for pc in self.code.indirect_targets(&self.image.range) {
            if let (Some(&entry), Some(address)) = (self.entries.get(&pc), self.image.offset(pc)) {
                push(&mut links, &[address, entry]);
            }
        }
        links
    }
}

fn push(to: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        to.extend(number.to_le_bytes());
    }
}
