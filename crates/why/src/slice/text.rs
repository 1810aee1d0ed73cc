//! A slice as people read it: a tree of lines.

use super::lines::Kind;
use super::races::ShownRace;
use super::shown::ShownLine;
use std::collections::HashMap;
use std::path::Path;

/// What fits on a screen.
pub const COLUMNS: usize = 80;
/// So much of a value is told.
const LONGEST_VALUE: usize = 40;
/// Deeper ones are not moved to the right any more.
const DEEPEST: usize = 10;

pub struct Tree<'a> {
    lines: &'a [ShownLine],
    races: &'a [ShownRace],
    /// The one that was asked about.
    thread: u64,
    children: HashMap<Option<usize>, Vec<usize>>,
    sources: HashMap<String, Option<Vec<String>>>,
}

impl<'a> Tree<'a> {
    /// Whoever depends on a line is among them.
    pub fn new(lines: &'a [ShownLine], races: &'a [ShownRace], thread: u64) -> Tree<'a> {
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            children.entry(line.parent).or_default().push(number);
        }
        for siblings in children.values_mut() {
            siblings.sort_by_key(|number| (lines[*number].because, lines[*number].order));
        }
        Tree { lines, races, thread, children, sources: HashMap::new() }
    }

    pub fn text(&mut self) -> String {
        let mut out = String::new();
        // The next lines to write, the first one last, each with its depth.
        let mut open: Vec<(usize, usize)> = self.below(None, 0);
        while let Some((number, depth)) = open.pop() {
            out += &self.line(number, depth);
            open.extend(self.below(Some(number), depth));
        }
        out
    }

    /// What is below a line; an only child stands in the same column.
    fn below(&self, number: Option<usize>, depth: usize) -> Vec<(usize, usize)> {
        let children = self.children.get(&number).map_or(&[][..], Vec::as_slice);
        let in_column = number.is_none() || children.len() == 1;
        let depth = if in_column { depth } else { depth + 1 };
        children.iter().rev().map(|child| (*child, depth)).collect()
    }

    fn line(&mut self, number: usize, depth: usize) -> String {
        let line = &self.lines[number];
        let indent = "  ".repeat(depth.min(DEEPEST));
        let mark = match line.because {
            // That a condition was computed from it says the line above.
            Kind::Value | Kind::Condition => "",
            Kind::Address => "where: ",
            Kind::Decided => "when: ",
        };
        let place = &line.place;
        let text = line.file.as_ref().zip(line.line).and_then(|(file, at)| self.source(file, at));
        let times = if line.times > 1 { format!(" ×{}", line.times) } else { String::new() };
        let above = line.parent.map_or(self.thread, |parent| self.lines[parent].thread);
        let thread =
            if line.thread == above { String::new() } else { format!(" thread {}", line.thread) };
        let head = format!("{indent}{mark}{place}{times}{thread}  {}", text.unwrap_or_default());
        let head = cut(head.trim_end(), COLUMNS);
        let seen = line.variable.as_ref().zip(line.value.as_ref());
        let value = seen.map(|(name, value)| {
            let told = format!("{name} = {}", brief(value));
            match head.chars().count() + 2 + told.chars().count() <= COLUMNS {
                true => format!("  {told}"),
                false => format!("\n{indent}      {told}"),
            }
        });
        let races = self.races.iter().filter(|race| race.line == Some(number));
        let races = races.map(|race| {
            let told = format!("{indent}      {}", race.told_below(line.thread));
            cut(&told, COLUMNS) + "\n"
        });
        let races: String = races.collect();
        head + &value.unwrap_or_default() + "\n" + &races
    }

    /// What stands in a line of source, if that is still there. The name may be that of a pipe by
    /// now, which nobody writes to.
    fn source(&mut self, file: &str, line: u64) -> Option<String> {
        let read = || {
            let text = why_symbols::read_file(Path::new(file))?;
            Some(
                String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect(),
            )
        };
        let lines: &Option<Vec<String>> = self.sources.entry(file.to_owned()).or_insert_with(read);
        lines.as_ref()?.get(line.checked_sub(1)? as usize).cloned()
    }
}

fn brief(value: &str) -> String {
    // What a pointer points to says more.
    let text = value.find(" \"").filter(|_| value.starts_with("0x")).map(|at| &value[at + 1..]);
    cut(text.unwrap_or(value), LONGEST_VALUE)
}

/// A remark, in as many lines as it takes.
pub fn remark(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in format!("({text})").split(' ') {
        let line = lines.last_mut().expect("there is one");
        let longer = format!("{line}{}{word}", if line.is_empty() { "" } else { " " });
        if longer.chars().count() <= COLUMNS || line.trim().is_empty() {
            *line = longer;
        } else {
            lines.push(format!(" {word}"));
        }
    }
    lines.iter().map(|line| cut(line, COLUMNS) + "\n").collect()
}

/// The beginning of a text, as far as it fits.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_go_on_in_the_next_line() {
        assert_eq!(remark("short enough"), "(short enough)\n");
        let words = remark(&["words"; 30].join(" "));
        assert!(words.lines().count() == 3 && words.ends_with(" words)\n"), "{words}");
        let long = remark(&["more", &"x".repeat(200)].concat());
        assert!(words.lines().chain(long.lines()).all(|line| line.chars().count() <= COLUMNS));
    }
}
