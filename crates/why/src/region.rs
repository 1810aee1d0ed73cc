//! The part of a run that `why record` records.

use crate::criterion::{self, Code, Criterion, Place};
use crate::executions::Counted;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;
use why_engine::{Border, Landmark, MappedCode, Missed, Region};
use why_record::manifest;
use why_symbols::{Image, LinkAddress, Module};

/// Where a region begins or ends, as the user said it.
#[derive(Clone, Debug)]
pub struct Where {
    text: String,
    place: WherePlace,
}

#[derive(Clone, Debug)]
enum WherePlace {
    Count(u64),
    Execution { code: Code, number: u64 },
}

impl FromStr for Where {
    type Err = String;

    fn from_str(text: &str) -> Result<Where, String> {
        let place = match text.parse() {
            Ok(count) => WherePlace::Count(count),
            Err(_) => match criterion::parse(text)? {
                Criterion { place: Place::Code(code, number), value: None } => {
                    // Which one will be the last nobody knows yet.
                    WherePlace::Execution { code, number: number.unwrap_or(1) }
                }
                _ => {
                    return Err(format!(
                        "{text} is no place of a run that is still to come: give FUNC[#N], \
                         FILE:LINE[#N] or a number of instructions"
                    ));
                }
            },
        };
        Ok(Where { text: text.to_owned(), place })
    }
}

impl Where {
    fn border(&self, images: &LiveImages) -> Border {
        match &self.place {
            WherePlace::Count(count) => Border::Count(*count),
            WherePlace::Execution { code, number } => {
                let code = Rc::new(LiveCode {
                    code: code.clone(),
                    images: images.clone(),
                    found: RefCell::default(),
                    searched: RefCell::default(),
                });
                Border::Execution { code, number: *number }
            }
        }
    }
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            WherePlace::Count(count) => write!(f, "instruction {count}"),
            WherePlace::Execution { .. } => f.write_str(&self.text),
        }
    }
}

/// Whether there can be anything between two places.
pub fn check(from: Option<&Where>, until: Option<&Where>) -> Result<(), String> {
    if let (
        Some(Where { place: WherePlace::Count(first), .. }),
        Some(Where { place: WherePlace::Count(last), .. }),
    ) = (from, until)
        && first >= last
    {
        return Err(format!(
            "nothing lies between instruction {first} and instruction {last}: give --until a \
             greater number than --from"
        ));
    }
    Ok(())
}

/// What is to be recorded.
pub fn region(from: Option<&Where>, until: Option<&Where>) -> Region {
    let images = LiveImages::default();
    let border = |place: Option<&Where>| place.map(|place| place.border(&images));
    Region { from: border(from), until: border(until) }
}

/// Why there is no recording.
pub fn why_missed(from: &Where, until: Option<&Where>, missed: &Missed) -> String {
    match (missed, until) {
        (Missed::Empty, Some(until)) => format!("{until} came before {from}"),
        (Missed::Empty, None) => format!("the program ended with {from}"),
        (Missed::Start(how), _) => format!("the program ended before {from}: {how}"),
    }
}

/// What the manifest says of it.
pub fn manifest_entry(from: Option<&Where>, until: Option<&Where>) -> Option<manifest::Region> {
    let text = |place: Option<&Where>| place.map(|place| place.text.clone());
    let (from, until) = (text(from), text(until));
    let region = manifest::Region { from, until, ..manifest::Region::default() };
    (region.from.is_some() || region.until.is_some()).then_some(region)
}

/// The files that have been mapped. Every program maps the C library.
#[derive(Clone, Default)]
struct LiveImages(Rc<RefCell<HashMap<State, Option<Rc<Image>>>>>);

/// A state of a file: device, inode, size, and when it was changed.
type State = (u64, u64, u64, i64, i64);

impl LiveImages {
    /// None if it is no code.
    fn load(&self, mapped: &MappedCode) -> Option<Rc<Image>> {
        let file = std::fs::metadata(mapped.path).ok()?;
        let state = (file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec());
        let load = || {
            let bytes = std::fs::read(mapped.path).ok()?;
            Image::load(&bytes, Path::new(&mapped.name)).map(Rc::new)
        };
        self.0.borrow_mut().entry(state).or_insert_with(load).clone()
    }
}

/// Code that is looked for in files as the program maps them.
struct LiveCode {
    code: Code,
    images: LiveImages,
    found: RefCell<Counted>,
    /// Where it is in those images that have been searched.
    searched: RefCell<HashMap<*const Image, BTreeSet<LinkAddress>>>,
}

impl std::fmt::Debug for LiveCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.code)
    }
}

impl Landmark for LiveCode {
    fn addresses(&self, mapped: &MappedCode) -> Vec<u64> {
        let Some(image) = self.images.load(mapped) else {
            return Vec::new();
        };
        let mut found = self.found.borrow_mut();
        let mut searched = self.searched.borrow_mut();
        let linked = searched
            .entry(Rc::as_ptr(&image))
            .or_insert_with(|| found.look_for(&self.code, &image));
        let (range, name) = (mapped.range.clone(), mapped.name.clone());
        let module = Module::new(range, mapped.offset, true, name, image);
        module.map_or_else(Vec::new, |module| found.place(linked, &module))
    }

    fn missed(&self, number: u64, times: u64) -> String {
        let mut found = self.found.borrow_mut();
        found.times = times;
        found.none(&self.code, Some(number)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_come_are_functions_lines_and_counts() {
        for text in ["main", "main#3", "p.c:10", "p.c:10#2", "123"] {
            assert!(text.parse::<Where>().is_ok(), "{text}");
        }
        for text in ["", "start", "end", "crash", "3.4", "main:x", "main#0", "-5"] {
            assert!(text.parse::<Where>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_region_must_not_end_where_it_begins() {
        let place = |text: &str| text.parse::<Where>().unwrap();
        let possible = |from: &str, until: &str| check(Some(&place(from)), Some(&place(until)));
        assert!(possible("3", "4").is_ok() && possible("main", "main").is_ok());
        assert!(possible("4", "4").is_err() && possible("5", "4").is_err());
    }
}
