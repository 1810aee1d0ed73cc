//! Which line of the source an address belongs to, and which addresses begin a line.

use crate::paths;
use crate::units::Units;
use crate::{Die, Image, LinkAddress, Unit};
use gimli::constants as dw;
use gimli::{AttributeValue, Reader};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file's path, from the directory on in which it was compiled.
    pub file: String,
    pub line: u64,
}

impl SourceLine {
    /// The last part of the file's path.
    pub fn short_file(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// Whether it is this line of a file that is named by its path or the last parts of it.
    pub fn is_meant(&self, file: &str, line: u64) -> bool {
        self.line == line && paths::is_meant(&self.file, file)
    }
}

/// What was found for a line of a file.
#[derive(Clone, Debug, Default)]
pub struct LineSearch {
    /// Where its statements begin.
    pub addresses: BTreeSet<LinkAddress>,
    /// Whether any code was made from such a file.
    pub file_is_known: bool,
    /// The first line behind it from which code was made.
    pub next_line: Option<u64>,
    /// The last line from which code was made.
    pub last_line: Option<u64>,
    /// The files of this name that have code there.
    pub files: BTreeSet<String>,
}

/// From here on the code belongs to this line; to none behind the end of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub address: u64,
    file: u64,
    pub line: u64,
    is_statement: bool,
    pub prologue_end: bool,
    end: bool,
}

pub struct LineTable {
    /// In the order of addresses, those of one address in the order of the compiler.
    pub rows: Vec<Row>,
    files: HashMap<u64, String>,
}

/// The tables that were read already.
#[derive(Default)]
pub struct LineTables(RefCell<HashMap<(usize, usize), Rc<LineTable>>>);

impl LineTables {
    pub fn of(&self, units: &Units, unit: &Unit) -> Rc<LineTable> {
        let unit = unit.with_lines();
        let key = unit.key();
        let mut known = self.0.borrow_mut();
        known.entry(key).or_insert_with(|| Rc::new(LineTable::read(units, unit))).clone()
    }
}

impl LineTable {
    fn read(units: &Units, unit: &Unit) -> LineTable {
        let mut table = LineTable { rows: Vec::new(), files: HashMap::new() };
        let Some(program) = unit.line_program.clone() else {
            return table;
        };
        let header = program.header();
        for index in 0..=header.file_names().len() as u64 {
            if let Some(entry) = header.file(index) {
                table.files.insert(index, path(units, unit, header, entry));
            }
        }
        let mut sequences: Vec<Vec<Row>> = Vec::new();
        let mut sequence = Vec::new();
        let mut rows = program.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            sequence.push(Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |line| line.get()),
                is_statement: row.is_stmt(),
                prologue_end: row.prologue_end(),
                end: row.end_sequence(),
            });
            if row.end_sequence() {
                sequences.push(std::mem::take(&mut sequence));
            }
        }
        // Code that the linker has left out begins at zero.
        sequences.retain(|sequence| sequence[0].address != 0);
        sequences.sort_by_key(|sequence| sequence[0].address);
        table.rows = sequences.concat();
        table
    }

    /// The line that an instruction was made from. Of several rows for one address that is the
    /// last: those before it begin statements of which nothing is left there.
    pub fn at(&self, address: LinkAddress) -> Option<SourceLine> {
        self.rows_at(address).next().and_then(|row| self.source_line(row))
    }

    /// The line that a thread is said to be in when it comes to an address: of several rows the
    /// last that begins a statement, as debuggers have it.
    fn statement_at(&self, address: LinkAddress) -> Option<SourceLine> {
        let begins = |row: &&Row| row.is_statement && !row.end;
        let row = self.rows_at(address).find(begins).or_else(|| self.rows_at(address).next());
        row.and_then(|row| self.source_line(row))
    }

    /// The rows that hold at an address, the last one first.
    fn rows_at(&self, LinkAddress(address): LinkAddress) -> impl Iterator<Item = &Row> {
        let behind = self.rows.partition_point(|row| row.address <= address);
        let before = self.rows[..behind].iter().rev();
        let last = before.clone().next().map(|row| row.address);
        before.take_while(move |row| Some(row.address) == last)
    }

    /// The rows that begin within some addresses.
    pub fn within(&self, addresses: Range<u64>) -> impl Iterator<Item = &Row> {
        let first = self.rows.partition_point(|row| row.address < addresses.start);
        self.rows[first..].iter().take_while(move |row| row.address < addresses.end)
    }

    /// None behind the end of a sequence, and of code that was made from no line.
    fn source_line(&self, row: &Row) -> Option<SourceLine> {
        let known = !row.end && row.line != 0;
        known.then(|| SourceLine { file: self.file(row.file), line: row.line })
    }

    pub fn file(&self, index: u64) -> String {
        self.files.get(&index).cloned().unwrap_or_else(|| "??".to_owned())
    }

    /// The numbers of the files that a path means.
    fn meant(&self, file: &str) -> Vec<u64> {
        let meant = self.files.iter().filter(|(_, path)| paths::is_meant(path, file));
        meant.map(|(index, _)| *index).collect()
    }

    /// Adds where statements of a line begin: where code of it follows on code of another.
    fn search(&self, file: &str, line: u64, found: &mut LineSearch) {
        let meant = self.meant(file);
        if meant.is_empty() {
            return;
        }
        let mut before: Option<&Row> = None;
        for row in &self.rows {
            let same = |other: &Row| !other.end && (other.file, other.line) == (row.file, row.line);
            let begins = row.is_statement && !row.end && !before.is_some_and(same);
            before = Some(row);
            if !begins || !meant.contains(&row.file) {
                continue;
            }
            found.file_is_known = true;
            found.last_line = found.last_line.max(Some(row.line));
            if row.line == line {
                found.addresses.insert(LinkAddress(row.address));
                found.files.insert(paths::plain(&self.file(row.file)));
            } else if row.line > line {
                let nearer = found.next_line.is_none_or(|next| row.line < next);
                found.next_line = if nearer { Some(row.line) } else { found.next_line };
            }
        }
    }

    /// The line of a file that code was made from which begins at an address, or that begins
    /// there though nothing is left of it.
    fn meant_at(&self, address: LinkAddress, file: &str, line: u64) -> Option<SourceLine> {
        let lines = self.rows_at(address).filter_map(|row| self.source_line(row));
        lines.into_iter().find(|told| told.is_meant(file, line))
    }

    /// The addresses, in a range, at which code of another line than this one begins.
    pub fn other_lines(&self, range: &std::ops::Range<u64>, not: &SourceLine) -> Vec<LinkAddress> {
        let inside = self.rows.iter().filter(|row| range.contains(&row.address) && !row.end);
        inside
            .filter(|row| {
                self.statement_at(LinkAddress(row.address)).is_some_and(|line| line != *not)
            })
            .map(|row| LinkAddress(row.address))
            .collect()
    }
}

fn path(
    units: &Units,
    unit: &Unit,
    header: &gimli::LineProgramHeader<crate::Bytes>,
    entry: &gimli::FileEntry<crate::Bytes>,
) -> String {
    let text = |value| units.string(unit, value).unwrap_or_default();
    let directory = entry.directory(header).map(text).unwrap_or_default();
    let compiled_in = unit.comp_dir.as_ref().and_then(|path| path.to_string_lossy().ok());
    let directory = paths::joined(compiled_in.as_deref().unwrap_or_default(), &directory);
    paths::joined(&directory, &text(entry.path_name()))
}

impl Image {
    /// The line that an instruction was made from.
    pub fn line(&self, address: LinkAddress) -> Option<SourceLine> {
        let unit = self.units.at(address)?;
        self.lines.of(&self.units, &unit).at(address)
    }

    /// The line that a thread is in when it comes to an address.
    pub(crate) fn statement(&self, address: LinkAddress) -> Option<SourceLine> {
        let unit = self.units.at(address)?;
        self.lines.of(&self.units, &unit).statement_at(address)
    }

    /// Adds where a line of a file begins, behind the prologue if it begins a function.
    pub fn search_line(&self, file: &str, line: u64, found: &mut LineSearch) {
        let mut here = LineSearch::default();
        for unit in self.units.with_code() {
            self.lines.of(&self.units, &unit).search(file, line, &mut here);
        }
        let behind = here.addresses.iter().map(|address| self.behind_prologue(*address));
        found.addresses.extend(behind);
        found.files.extend(here.files);
        found.file_is_known |= here.file_is_known;
        found.last_line = found.last_line.max(here.last_line);
        let nearest = [found.next_line, here.next_line].into_iter().flatten().min();
        found.next_line = nearest;
    }

    /// The code that was made from a file.
    pub fn code_of_file(&self, file: &str) -> Vec<Range<LinkAddress>> {
        let mut found: Vec<Range<LinkAddress>> = Vec::new();
        for unit in self.units.all() {
            let table = self.lines.of(&self.units, &unit);
            let meant = table.meant(file);
            for pair in table.rows.windows(2) {
                let code = LinkAddress(pair[0].address)..LinkAddress(pair[1].address);
                if pair[0].end || !meant.contains(&pair[0].file) || code.is_empty() {
                    continue;
                }
                match found.last_mut() {
                    Some(last) if last.end == code.start => last.end = code.end,
                    _ => found.push(code),
                }
            }
        }
        found
    }

    /// The lines that are never left for the next one but within some code.
    pub(crate) fn lines_left(&self, unit: &Unit, code: &[Range<u64>]) -> Vec<SourceLine> {
        let table = self.lines.of(&self.units, unit);
        let mut all_within: HashMap<(u64, u64), bool> = HashMap::new();
        for pair in table.rows.windows(2).filter(|pair| !pair[0].end) {
            let [line, next] = [&pair[0], &pair[1]].map(|row| (row.file, row.line));
            // Code that only stands behind it, such as that behind a return, is not all within.
            let holds = |code: &Range<u64>| pair.iter().all(|row| code.contains(&row.address));
            let within = code.iter().any(holds);
            if line != next || pair[1].end {
                *all_within.entry(line).or_insert(true) &= within;
            }
        }
        let left = all_within.into_iter().filter(|((_, line), within)| *within && *line != 0);
        left.map(|((file, line), _)| SourceLine { file: table.file(file), line }).collect()
    }

    /// A line of a file, by its whole path, if it begins at an address.
    pub fn line_begun(&self, address: LinkAddress, file: &str, line: u64) -> Option<SourceLine> {
        let unit = self.units.at(address)?;
        self.lines.of(&self.units, &unit).meant_at(address, file, line)
    }

    /// Where the function that an address lies in goes on with other lines than this one. What
    /// the line calls is part of it, also if that was inlined.
    pub fn ways_off_line(&self, address: LinkAddress, line: &SourceLine) -> Vec<LinkAddress> {
        let Some(unit) = self.units.at(address) else {
            return Vec::new();
        };
        let scopes = self.units.scopes(address);
        let Some(function) = scopes.last().and_then(|scope| scope.function.entry()) else {
            return Vec::new();
        };
        let table = self.lines.of(&self.units, &unit);
        let calls = self.inlined_calls(&unit, &function, line);
        let is_called = |way: &LinkAddress| calls.iter().any(|call| call.contains(&way.0));
        let stretches = self.units.stretches(&unit, &function);
        let ways = stretches.iter().flat_map(|stretch| table.other_lines(stretch, line));
        ways.filter(|way| !is_called(way)).collect()
    }

    /// The code of what was inlined into a function because a line calls it.
    fn inlined_calls(&self, unit: &Rc<Unit>, function: &Die, line: &SourceLine) -> Vec<Range<u64>> {
        let mut calls = Vec::new();
        let Ok(mut entries) = unit.entries_at_offset(function.offset()) else { return calls };
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.offset() != function.offset() && entry.depth() <= 0 {
                break;
            }
            if entry.tag() == dw::DW_TAG_inlined_subroutine
                && self.call_site(unit, entry).as_ref() == Some(line)
            {
                calls.extend(self.units.stretches(unit, entry));
            }
        }
        calls
    }

    /// Where a function that was inlined was to be called.
    pub(crate) fn call_site(&self, unit: &Rc<Unit>, inlined: &Die) -> Option<SourceLine> {
        let file = match inlined.attr_value(dw::DW_AT_call_file)? {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        let line = inlined.attr_value(dw::DW_AT_call_line)?.udata_value()?;
        Some(SourceLine { file: self.lines.of(&self.units, unit).file(file), line })
    }
}
