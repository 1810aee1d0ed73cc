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
    let begins = asked.len() >= PREFIX && name.starts_with(asked);
    let most = MOST_WRONG.min(asked.len() / 2);
    let distance = Some(strsim::osa_distance(asked, name)).filter(|distance| *distance <= most);
    distance.or(begins.then_some(MOST_WRONG))
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
