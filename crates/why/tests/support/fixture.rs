//! Finds the fixtures: `fixtures/TOPIC/NAME.EXT` with their directives.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::directives::{self, Directives};

/// One source file, one variant of it.
#[derive(Clone, Debug)]
pub struct Fixture {
    pub topic: String,
    pub name: String,
    pub source: PathBuf,
    pub variant: String,
    pub directives: Directives,
}

impl Fixture {
    /// `topic/name[variant]`.
    pub fn title(&self) -> String {
        format!("{}/{}[{}]", self.topic, self.name, self.variant)
    }
}

/// The directory `fixtures/` of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .canonicalize()
        .expect("the workspace has a directory fixtures/")
}

/// Every variant of every fixture, or for a file that cannot be read as one, its
/// name and what is wrong: that becomes a failing test.
pub fn all() -> Vec<Result<Fixture, (String, String)>> {
    let mut found = Vec::new();
    for topic in sorted(&root()).into_iter().filter(|path| path.is_dir()) {
        for source in sorted(&topic).into_iter().filter(|path| is_fixture(path)) {
            found.extend(variants(&file_name(&topic), &source));
        }
    }
    found
}

/// One fixture in its first variant.
pub fn named(title: &str) -> Result<Fixture, String> {
    all()
        .into_iter()
        .filter_map(Result::ok)
        .find(|fixture| format!("{}/{}", fixture.topic, fixture.name) == title)
        .ok_or_else(|| format!("there is no fixture {title}"))
}

fn variants(topic: &str, source: &Path) -> Vec<Result<Fixture, (String, String)>> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(source).map_err(|error| error.to_string());
    match text.and_then(|text| directives::parse(&text)) {
        Err(error) => {
            vec![Err((format!("{topic}/{name}"), format!("{}: {error}", source.display())))]
        }
        Ok(directives) => directives
            .variants
            .iter()
            .map(|variant| {
                Ok(Fixture {
                    topic: topic.into(),
                    name: name.clone(),
                    source: source.into(),
                    variant: variant.clone(),
                    directives: directives.clone(),
                })
            })
            .collect(),
    }
}

/// A header beside the fixtures, or a subdirectory with data, is none.
fn is_fixture(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    path.is_file() && !["h", "inc", "md", "txt"].iter().any(|other| extension == *other)
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
