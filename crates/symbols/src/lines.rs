//! Which line of the source an address belongs to, and which addresses begin a line.

use crate::leaving::Leaving;
use crate::locations::Point;
use crate::paths;
use crate::units::Units;
use crate::{Die, Image, LinkAddress, Unit};
use gimli::constants as dw;
use gimli::{AttributeValue, Reader};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
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
    pub is_statement: bool,
    pub prologue_end: bool,
    end: bool,
    /// How many rows for the same address come before it.
    pub view: u64,
}

impl Row {
    /// The number of its file, and the line.
    pub fn source(&self) -> (u64, u64) {
        (self.file, self.line)
    }

    /// Before it begins.
    fn point(&self) -> Point {
        Point { address: LinkAddress(self.address), view: self.view }
    }

    /// Whether it is of any line.
    pub fn is_of_line(&self) -> bool {
        !self.end && self.line != 0
    }
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
        let mut sequence: Vec<Row> = Vec::new();
        let mut rows = program.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            let before = sequence.last().filter(|before| before.address == row.address());
            let view = before.map_or(0, |before| before.view + 1);
            sequence.push(Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |line| line.get()),
                is_statement: row.is_stmt(),
                prologue_end: row.prologue_end(),
                end: row.end_sequence(),
                view,
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
        row.is_of_line().then(|| SourceLine { file: self.file(row.file), line: row.line })
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
        // The line whose statement was the last to begin, with no other line's code since.
        let mut begun: Option<(u64, u64)> = None;
        for row in &self.rows {
            begun = begun.filter(|begun| !row.end && *begun == row.source());
            let begins = row.is_statement && !row.end && begun.is_none();
            if begins {
                begun = Some(row.source());
            }
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

    /// The numbers of a file, by its whole path.
    pub fn files_of(&self, path: &str) -> HashSet<u64> {
        self.files.iter().filter(|(_, own)| *own == path).map(|(index, _)| *index).collect()
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

    /// The file of whose lines code is part, though it was made from none of them in particular.
    pub(crate) fn file_without_line(&self, address: LinkAddress) -> Option<String> {
        let unit = self.units.at(address)?;
        let table = self.lines.of(&self.units, &unit);
        let row = table.rows_at(address).next().filter(|row| !row.end && row.line == 0)?;
        Some(table.file(row.file))
    }

    /// Where the row of the table of lines begins that holds at an address, and whether a statement
    /// begins there.
    pub fn row_begun(&self, address: LinkAddress) -> Option<(LinkAddress, bool)> {
        let unit = self.units.at(address)?;
        let table = self.lines.of(&self.units, &unit);
        let mut rows = table.rows_at(address);
        let begun = table.rows_at(address).next().filter(|row| !row.end)?.address;
        Some((LinkAddress(begun), rows.any(|row| row.is_statement)))
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
    pub(crate) fn lines_left(&self, unit: &Unit, code: &[Range<Point>]) -> Vec<SourceLine> {
        let table = self.lines.of(&self.units, unit);
        let mut all_within: HashMap<(u64, u64), bool> = HashMap::new();
        for pair in table.rows.windows(2).filter(|pair| !pair[0].end) {
            let [line, next] = [&pair[0], &pair[1]].map(|row| (row.file, row.line));
            // Code that only stands behind it, such as that behind a return, is not all within.
            let holds = |code: &Range<Point>| pair.iter().all(|row| code.contains(&row.point()));
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

    /// When a line is over that is executed in the function that an address lies in. What the
    /// line calls is part of it, also if that was inlined.
    pub fn leaving(&self, address: LinkAddress, line: &SourceLine) -> Leaving {
        let Some(unit) = self.units.at(address) else {
            return Leaving::default();
        };
        let scopes = self.units.scopes(address);
        let Some(function) = scopes.last().and_then(|scope| scope.function.entry()) else {
            return Leaving::default();
        };
        let table = self.lines.of(&self.units, &unit);
        let inlined = self.inlined(&unit, &function, address, line);
        Leaving::new(&table, &self.units.stretches(&unit, &function), &inlined, line)
    }

    /// Where a function that was inlined was to be called.
    pub(crate) fn call_site(&self, unit: &Rc<Unit>, inlined: &Die) -> Option<SourceLine> {
        let file = match inlined.attr_value(dw::DW_AT_call_file)? {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        // What is written nowhere calls nothing that is.
        let line = inlined.attr_value(dw::DW_AT_call_line)?.udata_value()?;
        (line != 0).then(|| SourceLine { file: self.lines.of(&self.units, unit).file(file), line })
    }
}
