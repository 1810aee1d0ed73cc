//! A slice as it is shown, kept and loaded.

use super::changed;
use super::lines::Kind;
use super::races::ShownRace;
use super::text;
use super::whose;
use crate::questions::{Failure, no_answer};
use crate::say::{self, besides};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use why_record::store::Recording;
use why_record::{pack, remedy};
use why_slice::region::Slice;

/// How much of a slice is wanted, and how it is to be shown.
#[derive(Clone, clap::Args)]
pub struct ViewArgs {
    /// Leave out what only decided that something was executed
    #[arg(long)]
    pub data: bool,

    /// Leave out that, and what only selected where a value is
    #[arg(long)]
    pub thin: bool,

    /// Do not look into these functions, sources or mapped files: they made what they made
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub prune: Vec<String>,

    /// Only what was executed between two places counts; either may be left out
    #[arg(long, value_name = "FROM..UNTIL")]
    pub region: Option<String>,

    /// Go no farther than over so many lines
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,

    /// Show at most so many lines, those that are easiest to follow
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub lines: usize,

    /// Show every line, and every instruction that was executed
    #[arg(long)]
    pub all: bool,

    /// Take at most so much memory, such as 2G; without it, half of what is free
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<usize>,

    /// Print the answer as JSON
    #[arg(long, conflicts_with = "dot")]
    pub json: bool,

    /// Print the lines as a graph for Graphviz
    #[arg(long)]
    pub dot: bool,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    pub stats: bool,
}

/// A number of bytes, or of thousands, millions or milliards of them.
fn bytes(text: &str) -> Result<usize, String> {
    let (number, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: Option<usize> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "give a number of bytes, or one with K, M or G behind it".to_owned())
}

/// A slice that was found.
pub struct Answered<'a> {
    pub schema: &'static str,
    pub slice: &'a Slice,
}

#[derive(Serialize, Deserialize)]
pub struct Shown {
    pub schema: String,
    pub recording: PathBuf,
    pub process: i32,
    pub criterion: String,
    /// What was asked for, as it was.
    pub told: String,
    pub thread: u64,
    /// Those that are easiest to reach first: whoever depends on a line comes before it.
    pub lines: Vec<ShownLine>,
    /// Dependences on what another thread wrote, which nothing orders.
    pub races: Vec<ShownRace>,
    pub left_out: Vec<String>,
    /// How many instructions that were executed belong to it.
    pub in_slice: u64,
    /// Their positions in the trace in runs, each with the first and how many, if it is kept.
    pub runs: Vec<(u64, u64)>,
    /// All that is known of each, if that was asked for.
    pub told_instances: Vec<Instance>,
    /// How many instructions were executed in all.
    pub traced: u64,
    pub figures: String,
    #[serde(default)]
    pub preface: Preface,
    /// What it depends on of the process that was forked to make this one.
    #[serde(default)]
    pub before_fork: Option<Box<Shown>>,
}

/// What is told besides, in front of the lines: for people, and for programs.
#[derive(Default, Serialize, Deserialize)]
pub struct Preface {
    pub text: String,
    pub json: serde_json::Map<String, serde_json::Value>,
}

/// An instruction that was executed.
#[derive(Serialize, Deserialize)]
pub struct Instance {
    /// In the recording, and in the trace.
    pub position: Option<String>,
    pub number: u64,
    pub thread: u64,
    pub address: u64,
    pub place: String,
    /// Who depends on it: another of these; none if what was asked for does.
    pub wanter: Option<usize>,
    pub because: Kind,
    /// What it made: bytes of memory or registers.
    pub made: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub struct ShownLine {
    /// Where it is, in words.
    pub place: String,
    pub file: Option<String>,
    pub line: Option<u64>,
    pub function: Option<String>,
    pub module: Option<String>,
    pub times: u64,
    /// Which line depends on it; none if what was asked for does.
    pub parent: Option<usize>,
    pub because: Kind,
    pub stands_for_calls: bool,
    pub thread: u64,
    pub position: Option<String>,
    /// By time, the last executed first.
    pub order: usize,
    pub variable: Option<String>,
    pub value: Option<String>,
}

impl Preface {
    /// Tells more.
    pub fn extend(&mut self, more: Preface) {
        self.text += &more.text;
        self.json.extend(more.json);
    }
}

impl Shown {
    pub fn print(self, view: &ViewArgs) {
        if view.dot {
            self.say_what_is_not_drawn(view);
        }
        let limited = self.limited(view);
        say::with(|out| limited.write(view, out));
        let mut shown = Some(&limited).filter(|_| view.stats);
        while let Some(Shown { figures, before_fork, .. }) = shown {
            besides!("{figures}");
            shown = before_fork.as_deref();
        }
    }

    /// Whoever hands a graph on to another program does not read it.
    fn say_what_is_not_drawn(&self, view: &ViewArgs) {
        if let Some(more) = self.more(view) {
            besides!("{more}");
        }
        let before = self.before_fork.as_ref().and_then(|before| before.more(view));
        if let Some(more) = before {
            besides!("before the fork, {more}");
        }
    }

    fn write(&self, view: &ViewArgs, out: &mut impl Write) -> io::Result<()> {
        if view.json {
            writeln!(out, "{}", self.json(view.all))?;
        } else if view.dot {
            write!(out, "{}", self.dot())?;
        } else {
            let out = &mut say::Harmless(out);
            self.write_text(view, out)?;
            for line in changed::told(self) {
                write!(out, "{}", text::remark(&line))?;
            }
        }
        Ok(())
    }

    fn write_text(&self, view: &ViewArgs, out: &mut impl Write) -> io::Result<()> {
        if !self.preface.text.is_empty() {
            writeln!(out, "{}", self.preface.text)?;
        }
        writeln!(out, "{}", text::cut(&self.told, text::COLUMNS))?;
        write!(out, "{}", text::Tree::new(&self.lines, &self.races, self.thread).text())?;
        for race in self.races.iter().filter(|race| race.line.is_none()) {
            writeln!(out, "{}", race.told())?;
        }
        if view.all {
            self.write_instances(out)?;
        }
        for line in &self.left_out {
            write!(out, "{}", text::remark(line))?;
        }
        if let Some(before) = &self.before_fork {
            writeln!(out)?;
            before.write_text(view, out)?;
        }
        Ok(())
    }

    fn write_instances(&self, out: &mut impl Write) -> io::Result<()> {
        for instance in &self.told_instances {
            let Instance { position, thread, place, because, made, .. } = instance;
            let position = position.as_deref().unwrap_or("?");
            let wanter = instance.wanter.map(|wanter| &self.told_instances[wanter]);
            let for_whom = match wanter {
                Some(wanter) => wanter.position.as_deref().unwrap_or("?"),
                None => "what was asked for",
            };
            let because = format!("{because:?}").to_lowercase();
            let made = made.as_ref().map_or(String::new(), |made| format!(" in {made}"));
            let races = self.races.iter().filter(|race| race.write.number == instance.number);
            let races: String =
                races.map(|race| format!("; {}", race.told_below(*thread))).collect();
            writeln!(
                out,
                "{position}  thread {thread}  {place}: {because}{made} for {for_whom}{races}"
            )?;
        }
        Ok(())
    }

    fn json(&self, all: bool) -> serde_json::Value {
        let mut told = json!({
            "schema": self.schema,
            "recording": self.recording,
            "criterion": self.criterion,
            "answer": {
                "told": self.told,
                "lines": self.lines,
                "races": self.races,
                "instances": all.then_some(&self.told_instances),
                "before_fork": self.before_fork.as_ref().map(|before| before.json(all)),
            },
            "left_out": self.left_out,
            "stats": { "traced": self.traced, "in_slice": self.in_slice },
        });
        if let Some(answer) = told["answer"].as_object_mut() {
            answer.extend(self.preface.json.clone());
        }
        told
    }

    /// For Graphviz: arrows lead from what depends to what it depends on.
    fn dot(&self) -> String {
        format!("digraph slice {{\n{}}}\n", self.dot_lines(""))
    }

    /// Nodes and arrows, by names that nobody else has.
    fn dot_lines(&self, own: &str) -> String {
        let quoted = |text: &str| format!("{:?}", text);
        let mut out = format!("  {own}criterion [label={}];\n", quoted(&self.told));
        for (number, line) in self.lines.iter().enumerate() {
            let value = line.variable.as_ref().zip(line.value.as_ref());
            let value = value.map(|(name, value)| format!("\n{name} = {value}"));
            let label = line.place.clone() + &value.unwrap_or_default();
            out += &format!("  {own}l{number} [label={}];\n", quoted(&label));
            let from = line.parent.map_or("criterion".to_owned(), |parent| format!("l{parent}"));
            let because = format!("{:?}", line.because).to_lowercase();
            out += &format!("  {own}{from} -> {own}l{number} [label=\"{because}\"];\n");
        }
        if !self.left_out.is_empty() {
            let told = quoted(&self.left_out.join("\n"));
            out += &format!("  {own}left_out [shape=note, label={told}];\n");
        }
        if let Some(before) = &self.before_fork {
            let parent = format!("{own}before_fork_");
            out += &format!("  {own}criterion -> {parent}criterion [label=\"fork\"];\n");
            out += &before.dot_lines(&parent);
        }
        out
    }

    /// Keeps it in the recording.
    pub fn save(&self, recording: &Recording, name: &str) -> Result<(), Failure> {
        let path = path(recording, name);
        let text = serde_json::to_vec(&whose::Kept::of(self, recording)?).expect("plain data");
        let save = || {
            let directory = path.parent().expect("it has one");
            std::fs::create_dir_all(directory)?;
            // One of that name stays until this one is whole.
            let mut unfinished = tempfile::NamedTempFile::new_in(directory)?;
            unfinished.as_file_mut().write_all(&text)?;
            unfinished.persist(&path).map_err(|error| error.error).map(drop)
        };
        save().map_err(|error| {
            let remedy = remedy::behind(&error);
            Failure::NoAnswer(format!("writing {}: {error}{remedy}", path.display()))
        })
    }

    /// One that was kept in the recording, or was taken elsewhere: a name with a slash in it is
    /// that of a file. It is of this recording and of no other.
    pub fn load(recording: &Recording, name: &str) -> Result<Shown, Failure> {
        let path = match name.contains('/') {
            true => PathBuf::from(name),
            false => path(recording, name),
        };
        let text = std::fs::read(&path).map_err(|error| {
            let kept = kept(recording);
            no_answer(format!("reading {}: {error}; kept slices: {kept}", path.display()))
        })?;
        let damaged = || no_answer(format!("{} is damaged; make it again", path.display()));
        whose::read(&text, recording)?.ok_or_else(damaged)
    }
}

fn path(recording: &Recording, name: &str) -> PathBuf {
    recording.path.join("slices").join(file_name(name))
}

fn file_name(name: &str) -> String {
    format!("{name}.json")
}

/// A recording is packed with its slices, so these have names that a packed file may have.
pub fn can_be_name(name: &str) -> Result<(), Failure> {
    let misused = || {
        Failure::Misused(format!(
            "{name:?} cannot be the name of a slice: give some letters from A to Z, digits, -, _ \
             or ., which is not the first"
        ))
    };
    pack::is_plain(&file_name(name)).then_some(()).ok_or_else(misused)
}

/// The names of the slices that were kept.
pub fn kept(recording: &Recording) -> String {
    let files = std::fs::read_dir(recording.path.join("slices")).into_iter().flatten().flatten();
    let name = |file: std::fs::DirEntry| {
        Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned())
    };
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
