//! Archived translations in the code cache: thawed when their image is mapped, and
//! all translations of an image frozen into an archive when the cache is given up.

use crate::archive::{Archive, Contents, Section};
use crate::arena::Item;
use crate::code::{Code, Placed, UnitId};
use crate::description;
use crate::image::Image;
use crate::memory::{Address, page_of};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;
use why_translate::{ExitKind, chain};

/// An archive's code in an arena.
pub struct Frozen {
    pub image: Image,
    archive: Rc<Archive>,
    at: Address,
    arena: usize,
    length: u32,
    /// Units whose description has been needed.
    materialised: FxHashMap<u32, UnitId>,
    /// The number of the archive's first link.
    first_link: u32,
    /// The image has been unmapped or changed.
    pub dead: bool,
}

/// Archives with less news than this, in units and in hundredths, are left alone.
const NEWS: usize = 8;

/// How much farther from its image an archive's code may lie than when it was written:
/// less than what [`crate::arena::REACH`] leaves below 2 GiB.
const NUDGE: u32 = 256 << 20;

/// Every item in the code begins at a multiple of this, as in an arena.
const ALIGNMENT: usize = 16;

impl Frozen {
    fn unit_at(&self, pc: Address) -> Option<Address> {
        let offset = self.image.offset(pc)?;
        let by_address = self.archive.records::<2>(Section::ByAddress);
        let index = by_address.up_to(offset).checked_sub(1)?;
        let [found, unit] = by_address.get(index);
        let [code, ..] = self.archive.records::<3>(Section::Units).get(unit as usize);
        (found == offset).then(|| self.at + u64::from(code))
    }

    /// The last record of a section that begins at or before an offset in the code.
    fn before<const N: usize>(&self, section: Section, offset: u32) -> Option<(u32, [u32; N])> {
        let records = self.archive.records::<N>(section);
        let index = records.up_to(offset).checked_sub(1)?;
        Some((index as u32, records.get(index)))
    }
}

impl Code {
    /// Whether an archived unit begins at `pc`: its entry.
    pub(crate) fn frozen_entry(&self, pc: Address) -> Option<Address> {
        let frozen = self.frozen.iter().find(|f| !f.dead && f.image.range.contains(&pc))?;
        frozen.unit_at(pc)
    }

    /// Places an archive's code for an image; false if it does not fit there.
    pub fn thaw(&mut self, image: &Image, archive: Rc<Archive>) -> bool {
        let length = archive.section(Section::Code).len();
        let Some(arena) = self.arena_for(image.range.start) else {
            return false;
        };
        let Some(relocation) = Relocation::new(&archive, image.bias, self.arenas[arena].next())
        else {
            return false;
        };
        if !self.arenas[arena].has_room_for(length) {
            return false;
        }
        let number = self.frozen.len() as u32;
        let at = self.arenas[arena].place_with(Item::Frozen(number), length, |place| {
            place.copy_from_slice(archive.section(Section::Code));
            relocation.apply(&archive, place);
        });
        let first_link = self.link_count();
        self.reserve_links(archive.records::<2>(Section::Links).len());
        for [offset, address] in archive.records::<2>(Section::Links).iter() {
            let pc = image.bias.wrapping_add(u64::from(address));
            self.add_link(pc, at + u64::from(offset), arena);
        }
        self.statistics.bytes += length as u64;
        self.statistics.thawed += archive.records::<3>(Section::Units).len() as u64;
        self.frozen.push(Frozen {
            image: image.clone(),
            length: length as u32,
            archive,
            at,
            arena,
            materialised: FxHashMap::default(),
            first_link,
            dead: false,
        });
        true
    }

    /// What lies at an offset in an archive's code.
    pub(crate) fn find_frozen(&mut self, number: u32, offset: u32) -> (Item, u32) {
        let frozen = &self.frozen[number as usize];
        let unit = frozen.before::<3>(Section::Units, offset);
        let link = frozen.before::<2>(Section::Links, offset);
        match (unit, link) {
            (unit, Some((index, [start, _]))) if unit.is_none_or(|(_, [u, ..])| u < start) => {
                (Item::Link(frozen.first_link + index), offset - start)
            }
            (Some((index, [start, ..])), _) => {
                (Item::Unit(self.materialise(number, index).0), offset - start)
            }
            _ => (Item::Glue, offset),
        }
    }

    /// Reads the description of an archived unit.
    fn materialise(&mut self, number: u32, index: u32) -> UnitId {
        let frozen = &self.frozen[number as usize];
        if let Some(&id) = frozen.materialised.get(&index) {
            return id;
        }
        let units = frozen.archive.records::<3>(Section::Units);
        let [start, _, description] = units.get(index as usize);
        let end = match index as usize + 1 {
            next if next < units.len() => units.get(next)[0],
            _ => frozen
                .archive
                .records::<2>(Section::Links)
                .iter()
                .next()
                .map_or(frozen.length, |l| l[0]),
        };
        let bytes = &frozen.archive.descriptions()[description as usize..];
        let unit = description::read(bytes, frozen.image.bias).expect("the archive was checked");
        let placed = Placed::archived(
            unit,
            frozen.at + u64::from(start),
            frozen.arena,
            end - start,
            frozen.dead,
        );
        let id = self.add_placed(placed);
        self.frozen[number as usize].materialised.insert(index, id);
        id
    }

    /// Gives up the archived code of images that touch a range.
    pub(crate) fn invalidate_frozen(&mut self, range: &std::ops::Range<Address>) {
        for number in 0..self.frozen.len() {
            let frozen = &self.frozen[number];
            let touched =
                frozen.image.range.start < range.end && range.start < frozen.image.range.end;
            if frozen.dead || !touched {
                continue;
            }
            self.frozen[number].dead = true;
            let frozen = &self.frozen[number];
            for [offset, ..] in frozen.archive.records::<3>(Section::Units).iter() {
                self.arenas[frozen.arena].write(frozen.at + u64::from(offset), &[0xcc]);
            }
            let addresses: Vec<Address> = frozen
                .archive
                .records::<2>(Section::Links)
                .iter()
                .map(|[_, address]| frozen.image.bias.wrapping_add(u64::from(address)))
                .collect();
            let ids: Vec<UnitId> = frozen.materialised.values().copied().collect();
            for id in ids {
                self.mark_dead(id);
            }
            for pc in addresses {
                self.disable_link(pc);
            }
        }
    }

    /// All translations of an image, as an archive; none if it would hold no news.
    pub fn freeze(&mut self, image: &Image) -> Option<Contents> {
        let number = self.frozen.iter().position(|f| !f.dead && f.image.range == image.range);
        let archived =
            number.map_or(0, |n| self.frozen[n].archive.records::<3>(Section::Units).len());
        let fresh = self.units_within(&image.range);
        if fresh.len() < NEWS + archived / 100 {
            return None;
        }
        let mut checksums: BTreeMap<u32, u32> = BTreeMap::new();
        let mut ids = fresh;
        if let Some(number) = number {
            ids.extend((0..archived as u32).map(|index| self.materialise(number as u32, index)));
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
            image.range.contains(&placed.unit.pc) && placed.pages().into_iter().all(known)
        });
        ids.sort_by_key(|&id| self.placed(id).unit.pc);
        ids.dedup_by_key(|&mut id| self.placed(id).unit.pc);
        Some(Freezer::new(self, image, ids).run(&checksums))
    }
}

/// How an archive's code must change to be right at another place.
struct Relocation {
    image: u64,
    displacement: i32,
}

impl Relocation {
    /// None if the code cannot lie there.
    fn new(archive: &Archive, bias: Address, at: Address) -> Option<Relocation> {
        let image = bias.wrapping_sub(archive.bias);
        let code = at.wrapping_sub(archive.at);
        // Addresses below 2 GiB are encoded in shorter instructions: such images do
        // not move.
        if image != 0 && archive.bias < 1 << 31 {
            return None;
        }
        let shift = image.wrapping_sub(code) as i64;
        // All displacements change by the same amount and were within reach of the
        // arena; so they are now, if the arena lies as it did, give or take its size.
        let displacement = i32::try_from(shift).ok().filter(|s| s.unsigned_abs() < NUDGE)?;
        Some(Relocation { image, displacement })
    }

    fn apply(&self, archive: &Archive, code: &mut [u8]) {
        if self.displacement != 0 {
            for [offset] in archive.records::<1>(Section::Displacements).iter() {
                let place = &mut code[offset as usize..offset as usize + 4];
                let old = i32::from_le_bytes((&*place).try_into().unwrap());
                place.copy_from_slice(&old.wrapping_add(self.displacement).to_le_bytes());
            }
        }
        if self.image != 0 {
            for [offset] in archive.records::<1>(Section::Literals).iter() {
                let place = &mut code[offset as usize..offset as usize + 8];
                let old = u64::from_le_bytes((&*place).try_into().unwrap());
                place.copy_from_slice(&old.wrapping_add(self.image).to_le_bytes());
            }
        }
    }
}

/// Lays the units of an image out anew, one behind the other.
struct Freezer<'a> {
    code: &'a Code,
    image: &'a Image,
    ids: Vec<UnitId>,
    /// Where the code is taken to lie.
    at: Address,
    bytes: Vec<u8>,
    entries: FxHashMap<Address, u32>,
    displacements: Vec<u8>,
    literals: Vec<u8>,
}

impl<'a> Freezer<'a> {
    fn new(code: &'a Code, image: &'a Image, ids: Vec<UnitId>) -> Self {
        Freezer {
            code,
            image,
            at: page_of(code.placed(ids[0]).at),
            ids,
            bytes: Vec::new(),
            entries: FxHashMap::default(),
            displacements: Vec::new(),
            literals: Vec::new(),
        }
    }

    fn run(mut self, checksums: &BTreeMap<u32, u32>) -> Contents {
        let (mut units, mut descriptions) = (Vec::new(), Vec::new());
        for id in self.ids.clone() {
            let start = self.copy(id);
            let unit = &self.code.placed(id).unit;
            self.entries.insert(unit.pc, start);
            let address = self.image.offset(unit.pc).expect("units lie within the image");
            push(&mut units, &[start, address, descriptions.len() as u32]);
            description::write(unit, self.image.bias, &mut descriptions);
        }
        for id in self.ids.clone() {
            self.link(id);
        }
        let mut by_address = Vec::new();
        for (index, &id) in self.ids.iter().enumerate() {
            let address = self.image.offset(self.code.placed(id).unit.pc).expect("as above");
            push(&mut by_address, &[address, index as u32]);
        }
        let links = self.links();
        let mut pages = Vec::new();
        for (&page, &checksum) in checksums {
            push(&mut pages, &[page, checksum]);
        }
        Contents {
            bias: self.image.bias,
            at: self.at,
            sections: [
                pages,
                self.bytes,
                self.displacements,
                self.literals,
                units,
                by_address,
                links,
                descriptions,
            ],
        }
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0xcc);
    }

    /// Copies a unit's code as it is in the cache now.
    fn copy(&mut self, id: UnitId) -> u32 {
        self.align();
        let placed = self.code.placed(id);
        let start = self.bytes.len();
        self.bytes.extend(self.code.bytes_of(id));
        let moved = placed.at.wrapping_sub(self.at + start as u64) as i64;
        for &offset in &placed.unit.displacements {
            let at = start + offset as usize;
            let old = i64::from(i32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap()));
            let new = i32::try_from(old + moved).expect("an arena is within reach of itself");
            self.bytes[at..at + 4].copy_from_slice(&new.to_le_bytes());
            push(&mut self.displacements, &[at as u32]);
        }
        for &offset in &placed.unit.literals {
            push(&mut self.literals, &[start as u32 + offset]);
        }
        start as u32
    }

    /// Links a unit's exits within the image, and undoes all other links.
    fn link(&mut self, id: UnitId) {
        let unit = &self.code.placed(id).unit;
        let start = self.entries[&unit.pc];
        for exit in &unit.exits {
            let stub = start + exit.stub;
            let target = match exit.kind {
                ExitKind::Direct(target) => self.entries.get(&target).copied(),
                _ => None,
            };
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

    /// The entries of indirect targets.
    fn links(&mut self) -> Vec<u8> {
        let mut links = Vec::new();
        for pc in self.code.indirect_targets(&self.image.range) {
            let Some(&entry) = self.entries.get(&pc) else {
                continue;
            };
            self.align();
            let start = self.bytes.len() as u32;
            let link = chain::link(self.at + u64::from(start), 0);
            self.bytes.extend(&link.code);
            self.patch(start + link.to_unit.0, entry);
            push(&mut links, &[start, self.image.offset(pc).expect("within the image")]);
        }
        links
    }
}

fn push(to: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        to.extend(number.to_le_bytes());
    }
}
