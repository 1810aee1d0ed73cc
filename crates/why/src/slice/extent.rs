//! How many of a slice's lines are shown, and how more of them would be.

use super::shown::{Shown, ViewArgs};

impl ViewArgs {
    /// How many of the lines are shown, by which other line depends on each: with each all that
    /// depends on it.
    pub fn how_many(&self, parents: impl ExactSizeIterator<Item = Option<usize>>) -> usize {
        let most = if self.all { parents.len() } else { self.lines.min(parents.len()) };
        let Some(depth) = self.depth else {
            return most;
        };
        let depths = depths(parents.take(most));
        depths.iter().position(|own| *own > depth).unwrap_or(most)
    }
}

/// How many lines each is away from what was asked for. Those that depend on a line come before it.
fn depths(parents: impl Iterator<Item = Option<usize>>) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::new();
    for parent in parents {
        depths.push(parent.map_or(1, |parent| depths[parent] + 1));
    }
    depths
}

impl Shown {
    /// Only the lines that are to be shown.
    pub fn limited(mut self, view: &ViewArgs) -> Shown {
        let count = view.how_many(self.parents());
        if let Some(more) = self.more(view) {
            self.left_out.insert(0, more);
        }
        if view.all && self.told_instances.is_empty() && self.in_slice > 0 {
            let kept = "its instructions were not kept: --save it with --all to see them";
            self.left_out.push(kept.to_owned());
        }
        self.lines.truncate(count);
        for race in &mut self.races {
            race.line = race.line.filter(|line| *line < count);
        }
        self.before_fork = self.before_fork.map(|before| Box::new(before.limited(view)));
        self
    }

    /// How many lines are not to be shown, and which options would show them.
    pub fn more(&self, view: &ViewArgs) -> Option<String> {
        more(view, view.how_many(self.parents()), &depths(self.parents()))
    }

    fn parents(&self) -> impl ExactSizeIterator<Item = Option<usize>> {
        self.lines.iter().map(|line| line.parent)
    }
}

fn more(view: &ViewArgs, shown: usize, depths: &[usize]) -> Option<String> {
    let what = match depths.len() - shown {
        0 => return None,
        1 => "1 more line".to_owned(),
        rest => format!("{rest} more lines"),
    };
    let deepest = depths.iter().copied().max().unwrap_or(0);
    let too_deep = view.depth.is_some_and(|depth| depth < deepest);
    let too_many = !view.all && view.lines < depths.len();
    let options = [
        too_deep.then(|| format!("--depth={deepest}")),
        too_many.then(|| format!("--lines={}", depths.len())),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    let all = if too_deep && view.all { "" } else { " or --all" };
    Some(format!("{what}: {}{all}", options.join(" with ")))
}
