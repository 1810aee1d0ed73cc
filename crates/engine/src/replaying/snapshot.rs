//! All memory of a replayed process, as events that lead to it.

use super::look::Scene;
use crate::error::EngineError;
use crate::maps::{self, Mapping};
use crate::memory::Address;
use crate::pages::Pages;
use crate::recording::{KERNELS, filled};
use crate::shown_maps;
use std::io;
use std::ops::Range;
use why_record::event::{Access, Event, Source};

impl Scene<'_> {
    /// Tells what is mapped, each time with what is in it.
    pub fn snapshot(
        &self,
        tell: &mut dyn FnMut(Event) -> Result<(), String>,
    ) -> Result<(), String> {
        let told = |error: EngineError| error.to_string();
        let maps = maps::read(self.tid).map_err(told)?;
        let growing = maps::growing(self.tid).map_err(told)?;
        let pages = Pages::open(self.tid).map_err(told)?;
        let own = self.space.own_ranges();
        let shown = shown_maps::mappings(&maps, &self.space.regions, &own);
        for mapping in shown.iter().filter(|m| !KERNELS.contains(&m.name.as_str())) {
            for (range, source) in self.sources(mapping, &growing).map_err(told)? {
                let Mapping { readable: read, writable: write, executable: execute, .. } = *mapping;
                let access = Access { read, write, execute };
                let (at, size) = (range.start, range.end - range.start);
                let is_empty = !matches!(source, Source::File { .. });
                tell(Event::Mapped { at, size, access, source })?;
                let parts = match mapping.shared {
                    true => vec![range],
                    false => pages.own(range).map_err(told)?,
                };
                for part in parts {
                    filled(&self.space.memory, part, is_empty).try_for_each(&mut *tell)?;
                }
            }
        }
        Ok(())
    }

    /// What a mapping consists of.
    fn sources(
        &self,
        mapping: &Mapping,
        growing: &[Range<Address>],
    ) -> Result<Vec<(Range<Address>, Source)>, EngineError> {
        let Range { start, end } = mapping.range;
        let of_files = self.modules.iter().map(|module| &module.range);
        let of_objects = self.views.iter().map(|(range, ..)| range);
        let mut cuts: Vec<Address> =
            of_files.chain(of_objects).flat_map(|range| [range.start, range.end]).collect();
        cuts.retain(|cut| (start + 1..end).contains(cut));
        cuts.extend([start, end]);
        cuts.sort_unstable();
        cuts.dedup();
        let part = |cut: &[Address]| {
            let at = cut[0];
            let module = self.modules.iter().rfind(|module| module.range.contains(&at));
            let view = self.views.iter().rfind(|(range, ..)| range.contains(&at));
            let source = match (mapping.shared, module, view) {
                (true, _, Some((range, object, offset))) => {
                    Source::Shared { object: *object, offset: offset + (at - range.start) }
                }
                (false, Some(module), _) => Source::File {
                    hash: module.hash,
                    offset: module.offset + (at - module.range.start),
                    name: module.name.clone(),
                },
                (false, None, _) if mapping.inode == 0 => {
                    match growing.iter().any(|stack| stack.contains(&at)) {
                        true => Source::Stack,
                        false => Source::Zero,
                    }
                }
                // It is a private view of memory that is shared.
                _ => return Err(unknown(at)),
            };
            Ok((at..cut[1], source))
        };
        cuts.windows(2).map(part).collect()
    }
}

fn unknown(at: Address) -> EngineError {
    let unsupported = io::Error::from(io::ErrorKind::Unsupported);
    EngineError::system(format!("telling what is mapped at {at:#x}"))(unsupported)
}
