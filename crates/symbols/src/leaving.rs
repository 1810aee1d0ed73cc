//! When the execution of a line is over.
//!
//! A compiler that optimises mixes the instructions of several lines. Those that begin a statement
//! are marked as such, and they come in the order of the source. So a line is over for good where a
//! statement of another line begins; and it was left where its own instructions ended before that.

use crate::LinkAddress;
use crate::inlined::Inlined;
use crate::lines::{LineTable, SourceLine};
use std::collections::BTreeMap;
use std::ops::Range;

/// What begins at a row of the table of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    view: u64,
    own: bool,
    is_statement: bool,
    /// The code before it is of another line.
    follows_other: bool,
    /// It is the line's first statement since code of another line.
    is_first: bool,
}

/// Follows a thread from a row to another while it executes a line.
#[derive(Clone, Debug, Default)]
pub struct Leaving {
    rows: BTreeMap<LinkAddress, Vec<Begun>>,
    /// The code that was executed last was the line's.
    is_in_it: bool,
}

/// Where a thread has left a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Before which of the rows for the address, if it was only left here.
    pub here: Option<u64>,
    /// It is over: else some of its instructions may still follow.
    pub for_good: bool,
}

impl Leaving {
    /// Of a line in some code, which is that of a function. What is called by the line there, and
    /// was inlined, belongs to it.
    pub(crate) fn new(
        table: &LineTable,
        code: &[Range<u64>],
        inlined: &Inlined,
        line: &SourceLine,
    ) -> Leaving {
        let own_files = table.files_of(&line.file);
        let mut found: BTreeMap<LinkAddress, Vec<Begun>> = BTreeMap::new();
        for code in code {
            let (mut before, mut has_begun) = (None, false);
            for row in table.within(code.clone()).filter(|row| row.is_of_line()) {
                let is_own = row.line == line.line && own_files.contains(&row.source().0);
                let own = is_own || inlined.is_called(row.address, row.source());
                let follows_other = before != Some(own);
                before = Some(own);
                // As those that are counted begin.
                has_begun &= own;
                let is_first = is_own && row.is_statement && !has_begun;
                has_begun |= is_first;
                let (view, is_statement) = (row.view, row.is_statement);
                let begun = Begun { view, own, is_statement, follows_other, is_first };
                found.entry(LinkAddress(row.address)).or_default().push(begun);
            }
        }
        Leaving { rows: found, is_in_it: false }
    }

    /// Where a thread has to be looked at.
    pub fn addresses(&self) -> impl Iterator<Item = LinkAddress> {
        let counts =
            |rows: &[Begun]| rows.iter().any(|row| !row.own || row.follows_other || row.is_first);
        self.rows.iter().filter(move |(_, rows)| counts(rows)).map(|(address, _)| *address)
    }

    /// The code that was executed last was the line's.
    pub fn is_in_it(&self) -> bool {
        self.is_in_it
    }

    /// Whether any row begins at an address.
    pub fn has(&self, address: LinkAddress) -> bool {
        self.rows.contains_key(&address)
    }

    /// Before which of the rows for an address the line begins there.
    pub fn view(&self, address: LinkAddress) -> Option<u64> {
        self.first(address).map(|first| self.rows[&address][first].view)
    }

    /// The first row of the line: what is in front of that may be the end of the execution before.
    fn first(&self, address: LinkAddress) -> Option<usize> {
        let rows = self.rows.get(&address)?;
        let first = rows.iter().position(|row| row.is_first);
        let first = first.or_else(|| rows.iter().position(|row| row.own && row.is_statement));
        first.or_else(|| rows.iter().position(|row| row.own))
    }

    /// A thread begins to execute the line, at one of its statements: before which of the rows,
    /// and whether it has been left right there, since nothing of it is left.
    pub fn begin(&mut self, address: LinkAddress) -> Option<(u64, Option<Left>)> {
        let first = self.first(address)?;
        let rows = &self.rows[&address];
        let (view, rest) = (rows[first].view, rows[first + 1..].to_vec());
        self.is_in_it = true;
        let left = self.pass(&rest);
        // What belongs to it may still come.
        Some((view, left.map(|left| Left { for_good: false, ..left })))
    }

    /// A thread, in the same call, is about to execute the instruction at an address.
    pub fn reach(&mut self, address: LinkAddress) -> Option<Left> {
        let rows = self.rows.get(&address)?.clone();
        self.pass(&rows)
    }

    fn pass(&mut self, rows: &[Begun]) -> Option<Left> {
        let mut here = None;
        for row in rows {
            let stays = row.own && !row.is_first;
            if self.is_in_it && !stays {
                here = Some(row.view);
            }
            self.is_in_it = stays;
            // It is over, too, when it is executed for the next time.
            if row.is_first || row.is_statement && !row.own {
                return Some(Left { here, for_good: true });
            }
        }
        here.map(|view| Left { here: Some(view), for_good: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, each an address, whether it is of the line, and whether it begins a statement.
    fn leaving(rows: &[(u64, bool, bool)]) -> Leaving {
        let mut leaving = Leaving::default();
        let (mut before, mut has_begun) = (None, false);
        for &(address, own, is_statement) in rows {
            let begun = leaving.rows.entry(LinkAddress(address)).or_default();
            has_begun &= own;
            let is_first = own && is_statement && !has_begun;
            has_begun |= is_first;
            let (view, follows_other) = (begun.len() as u64, before != Some(own));
            before = Some(own);
            begun.push(Begun { view, own, is_statement, follows_other, is_first });
        }
        leaving
    }

    /// Before which rows the line is left on the way over some addresses, and where for good.
    fn left(rows: &[(u64, bool, bool)], way: &[u64]) -> Vec<(u64, Option<u64>, bool)> {
        let mut leaving = leaving(rows);
        let (_, at_once) = leaving.begin(LinkAddress(way[0])).unwrap();
        let mut all: Vec<(u64, Left)> = at_once.map(|left| (way[0], left)).into_iter().collect();
        for address in &way[1..] {
            let watched = leaving.addresses().any(|watched| watched.0 == *address);
            all.extend(
                leaving.reach(LinkAddress(*address)).filter(|_| watched).map(|l| (*address, l)),
            );
        }
        all.into_iter().map(|(address, left)| (address, left.here, left.for_good)).collect()
    }

    #[test]
    fn instructions_of_others_do_not_end_a_line_but_statements_do() {
        let rows = [(1, true, true), (2, false, false), (3, true, false), (4, false, true)];
        let expected = [(2, Some(0), false), (4, Some(0), true)];
        assert_eq!(left(&rows, &[1, 2, 3, 4]), expected);
        // What is behind the last of its own instructions is not told of it.
        let rows = [(1, true, true), (2, false, false), (3, false, true)];
        assert_eq!(left(&rows, &[1, 2, 3]), [(2, Some(0), false), (3, None, true)]);
    }

    #[test]
    fn of_several_statements_at_an_address_the_first_of_others_ends_it() {
        let rows = [(1, true, true), (2, true, true), (2, false, true), (2, false, true)];
        assert_eq!(left(&rows, &[1, 2]), [(2, Some(1), true)]);
        // Nothing is left of it, or what is left comes later.
        let rows = [(1, false, true), (1, true, true), (1, false, true), (2, true, false)];
        let rows = [&rows[..], &[(3, false, true)]].concat();
        assert_eq!(left(&rows, &[1, 3]), [(1, Some(2), false), (3, None, true)]);
        assert_eq!(left(&rows, &[1, 2, 3]), [(1, Some(2), false), (3, Some(0), true)]);
    }

    #[test]
    fn an_execution_is_over_when_the_next_one_begins() {
        let rows = [(1, true, true), (2, true, true), (3, false, true)];
        assert_eq!(left(&rows, &[1, 2, 1]), [(1, Some(0), true)]);
    }
}
