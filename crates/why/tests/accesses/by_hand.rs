//! Runs the cases of `cases.rs`: resolves their labels, and compares.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Completion, Failed, Trial};
use object::{Object, ObjectSymbol};

use crate::access::{Access, Kind};
use crate::cases::{CASES, Case};
use crate::oracle::{self, Surroundings};
use crate::support::assemble;
use crate::support::job::Job;
use crate::support::needs;
use crate::{REPLAYED, RUN, difference};

/// Who lists the accesses of a program.
type Lister = fn(&Job) -> Result<Vec<Access>, String>;

pub fn trials() -> Vec<Trial> {
    let listers: [(&str, Lister); 3] =
        [("single-stepped", stepped), (RUN.name, RUN.list), (REPLAYED.name, REPLAYED.list)];
    CASES.iter().flat_map(|case| listers.map(|(name, lister)| trial(case, name, lister))).collect()
}

fn trial(case: &'static Case, name: &'static str, lister: Lister) -> Trial {
    Trial::ignorable_test(format!("{}, {name}", case.name), move || test(case, name, lister))
}

fn test(case: &Case, name: &str, lister: Lister) -> Result<Completion, Failed> {
    let needs: Vec<String> = case.needs.iter().map(|need| need.to_string()).collect();
    if let Some(reason) = needs::unmet(&needs) {
        return Ok(Completion::ignored_with(reason));
    }
    let dir = tempfile::tempdir()?;
    let program = assemble(case, dir.path())?;
    let symbols = Symbols::of(&program)?;
    let expected =
        case.accesses.lines().map(|line| symbols.access(line)).collect::<Result<Vec<_>, _>>()?;
    let listed = lister(&Job::new(&program))?;
    difference::none("by hand", &expected, name, &listed, |pc| symbols.name(pc))?;
    Ok(Completion::Completed)
}

fn stepped(job: &Job) -> Result<Vec<Access>, String> {
    Ok(oracle::record(job, Surroundings::default())?.accesses)
}

/// The stack is memory of the program, so that its addresses are known; the stack
/// pointer is `top` when the case begins. The last instructions access nothing.
fn assemble(case: &Case, dir: &Path) -> Result<PathBuf, String> {
    const STACK: &str = ".bss\n .balign 4096\n .skip 16384\n top: .skip 64\n";
    const EXIT: &str = "mov edi, 0\n mov eax, 60\n syscall\n";
    let (code, data) = (case.code, case.data);
    let program = format!(
        "lea rsp, [rip + top]\n {code}\n {EXIT} .data\n .balign 64\n {data}\n {STACK} .text\n"
    );
    assemble::program(&program, dir)
}

/// The labels of an assembled program.
struct Symbols(Vec<(String, u64)>);

impl Symbols {
    fn of(program: &Path) -> Result<Symbols, String> {
        let bytes = fs::read(program).map_err(|error| error.to_string())?;
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes)
            .map_err(|error| error.to_string())?;
        let named = file
            .symbols()
            .filter_map(|symbol| Some((symbol.name().ok()?.to_string(), symbol.address())));
        Ok(Symbols(named.collect()))
    }

    /// `LABEL KIND PLACE SIZE`, where PLACE is `LABEL`, `LABEL+N` or `LABEL-N`.
    fn access(&self, line: &str) -> Result<Access, String> {
        let access = || {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [label, kind, place, size] = fields[..] else {
                return None;
            };
            Some(Access {
                pc: self.address(label)?,
                address: self.place(place)?,
                size: size.parse().ok()?,
                kind: Kind::from_letter(kind)?,
            })
        };
        access().ok_or_else(|| format!("not `LABEL KIND PLACE SIZE` with known labels: {line:?}"))
    }

    fn place(&self, place: &str) -> Option<u64> {
        let sign = place.find(['+', '-']).unwrap_or(place.len());
        let (label, distance) = place.split_at(sign);
        let distance: i64 = if distance.is_empty() { 0 } else { distance.parse().ok()? };
        Some(self.address(label)?.wrapping_add_signed(distance))
    }

    fn address(&self, label: &str) -> Option<u64> {
        self.0.iter().find(|(name, _)| name == label).map(|(_, address)| *address)
    }

    fn name(&self, pc: u64) -> String {
        let label = self.0.iter().find(|(_, address)| *address == pc);
        label.map_or("no label".into(), |(name, _)| name.clone())
    }
}
