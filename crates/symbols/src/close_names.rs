//! Names that are nearly what somebody asked for.

/// So many are told.
const MOST: usize = 3;
/// How many letters may be wrong.
const MOST_WRONG: usize = 2;

/// The nearest of some names, with how far they are; the first ones first.
#[derive(Debug, Default)]
pub struct CloseNames {
    distance: usize,
    names: Vec<String>,
}

impl CloseNames {
    pub fn add(&mut self, asked: &str, names: impl Iterator<Item = String>) {
        for name in names {
            let Some(distance) = distance(asked, &name) else { continue };
            if self.names.is_empty() || distance < self.distance {
                *self = CloseNames { distance, names: vec![name] };
            } else if distance == self.distance && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// What is told behind the message that there is no such name.
    pub fn told(&self) -> String {
        let names = &self.names[..self.names.len().min(MOST)];
        match names {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(" or ")),
        }
    }
}

/// How much is different, if that is little; what goes on where the other ends counts as much as
/// the most that may be wrong.
fn distance(asked: &str, name: &str) -> Option<usize> {
    /// So many letters are a beginning.
    const PREFIX: usize = 3;
    let last = name.rsplit("::").next().unwrap_or(name);
    let name = if asked.contains("::") { name } else { last };
    let (asked, name): (Vec<char>, Vec<char>) = (asked.chars().collect(), name.chars().collect());
    let begins = asked.len() >= PREFIX && name.starts_with(&asked);
    let most = MOST_WRONG.min(asked.len() / 2);
    let near = asked.len().abs_diff(name.len()) <= most;
    let distance = near.then(|| edits(&asked, &name)).filter(|distance| *distance <= most);
    distance.or(begins.then_some(MOST_WRONG))
}

/// How many letters are to be added, left out, changed, or swapped with the next one.
fn edits(old: &[char], new: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=new.len()).collect()];
    for (i, a) in old.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in new.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut best = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == new[j - 1] && old[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[old.len()][new.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: &str, names: &[&str]) -> String {
        let mut close = CloseNames::default();
        close.add(asked, names.iter().map(|name| (*name).to_owned()));
        close.told()
    }

    #[test]
    fn the_nearest_names_are_told() {
        assert_eq!(told("mian", &["mmap", "main"]), "; did you mean main?");
        assert_eq!(told("with", &["add", "withdraw"]), "; did you mean withdraw?");
        assert_eq!(told("prise", &["Item::price"]), "; did you mean Item::price?");
        assert_eq!(told("cat", &["car", "bat", "hat", "rat"]), "; did you mean car or bat or hat?");
        for (asked, names) in [("x", &["y", "xy"][..]), ("nosuch", &["left", "amount"])] {
            assert_eq!(told(asked, names), "", "{asked}");
        }
    }
}
