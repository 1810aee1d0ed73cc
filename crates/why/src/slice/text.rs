//! A slice as people read it: a tree of lines.

use crate::slice::lines::{Kind, Line, Lines};
use crate::slice::values::Seen;
use std::collections::HashMap;

/// What fits on a screen.
const COLUMNS: usize = 80;
/// So much of a value is told.
const LONGEST_VALUE: usize = 40;
/// Deeper ones are not moved to the right any more.
const DEEPEST: usize = 10;

pub struct Tree<'a> {
    lines: &'a [Line],
    seen: &'a [Option<Seen>],
    children: HashMap<Option<usize>, Vec<usize>>,
    sources: HashMap<String, Option<Vec<String>>>,
}

impl<'a> Tree<'a> {
    /// Of the first lines: whoever they depend on is among them.
    pub fn new(lines: &'a Lines, shown: usize, seen: &'a [Option<Seen>]) -> Tree<'a> {
        let lines = &lines.all[..shown];
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            children.entry(line.parent).or_default().push(number);
        }
        for siblings in children.values_mut() {
            // What was executed last comes first.
            siblings.sort_by_key(|number| (lines[*number].kind, lines[*number].reason));
        }
        Tree { lines, seen, children, sources: HashMap::new() }
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
        let mark = match line.kind {
            // That a condition was computed from it says the line above.
            Kind::Value | Kind::Condition => "",
            Kind::Address => "where: ",
            Kind::Decided => "when: ",
        };
        let place = match (&line.place.source, &line.place.function, &line.place.module) {
            (Some((file, at)), _, _) => format!("{}:{at}", short(file)),
            (None, Some(function), _) => function.clone(),
            (None, None, Some(module)) => module.clone(),
            (None, None, None) => "code of no file".to_owned(),
        };
        let text = line.place.source.as_ref().and_then(|(file, at)| self.source(file, *at));
        let times = if line.times > 1 { format!(" ×{}", line.times) } else { String::new() };
        let head = format!("{indent}{mark}{place}{times}  {}", text.unwrap_or_default());
        let head = cut(head.trim_end(), COLUMNS);
        let value = self.seen[number].as_ref().map(|seen| {
            let told = format!("{} = {}", seen.name, brief(&seen.value));
            match head.chars().count() + 2 + told.chars().count() <= COLUMNS {
                true => format!("  {told}"),
                false => format!("\n{indent}      {told}"),
            }
        });
        head + &value.unwrap_or_default() + "\n"
    }

    /// What stands in a line of source, if that is still there.
    fn source(&mut self, file: &str, line: u64) -> Option<String> {
        let read = || {
            let text = std::fs::read(file).ok()?;
            Some(
                String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect(),
            )
        };
        let lines: &Option<Vec<String>> = self.sources.entry(file.to_owned()).or_insert_with(read);
        lines.as_ref()?.get(line.checked_sub(1)? as usize).cloned()
    }
}

pub fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn brief(value: &str) -> String {
    // What a pointer points to says more.
    let text = value.find(" \"").filter(|_| value.starts_with("0x")).map(|at| &value[at + 1..]);
    cut(text.unwrap_or(value), LONGEST_VALUE)
}

/// The beginning of a text, as far as it fits.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
