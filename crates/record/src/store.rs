//! Where recordings are kept.

use crate::chunks::Magic;
use crate::manifest::Manifest;
use crate::pack::{self, Progress};
use crate::{RecordError, Result, unpacked};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// The user's recordings: in `WHY_DIR`, else in `why` under `XDG_DATA_HOME`.
pub fn root() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("WHY_DIR").filter(|given| !given.is_empty()) {
        return Ok(given.into());
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    data.or_else(home).map(|base| base.join("why")).ok_or_else(|| {
        RecordError::NotFound(
            "there is no place for recordings: neither WHY_DIR nor HOME is set; set one".to_owned(),
        )
    })
}

/// The first path for a new recording of a program at which there is nothing.
pub fn unused(program: &str) -> Result<PathBuf> {
    Ok(paths_for(program)?.find(|path| !path.exists()).expect("numbers do not end"))
}

/// Where recordings of a program may be, among the user's.
fn paths_for(program: &str) -> Result<impl Iterator<Item = PathBuf>> {
    let root = root()?;
    let name = Path::new(program).file_name().map_or(program.into(), |n| n.to_string_lossy());
    let name = name.into_owned();
    Ok((1..).map(move |number: u64| root.join(format!("{name}-{number}"))))
}

/// The directories of a recording.
#[derive(Clone)]
pub struct Recording {
    pub path: PathBuf,
}

impl Recording {
    /// A new one at this path.
    pub fn create(path: &Path) -> Result<Recording> {
        let what = format!("cannot create the recording {}", path.display());
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let private = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        parent
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| private(path))
            .and_then(|()| private(&path.join("events")))
            .and_then(|()| private(&path.join("files")))
            .and_then(|()| private(&path.join("checkpoints")))
            .map_err(RecordError::system(what))?;
        Ok(Recording { path: path.to_owned() })
    }

    /// A new one among the user's, named after the program.
    pub fn create_for(program: &str) -> Result<Recording> {
        for path in paths_for(program)? {
            match Recording::create(&path) {
                Err(RecordError::System { source, .. })
                    // It may also be where recordings are that is no directory.
                    if source.kind() == ErrorKind::AlreadyExists && path.exists() => {}
                done => return done,
            }
        }
        unreachable!("numbers do not end")
    }

    pub fn open(path: &Path) -> Recording {
        Recording { path: path.to_owned() }
    }

    pub fn manifest(&self) -> Result<Manifest> {
        Manifest::read(&self.path)
    }

    /// The events of the first, second … program that a process has executed.
    pub fn stream(&self, process: i32, program: u32) -> PathBuf {
        self.path.join("events").join(format!("{process}.{program}"))
    }

    /// A checkpoint of a process, by the program that it executes and the number of events
    /// in front of it.
    pub fn checkpoint(&self, process: i32, program: u32, events: u64) -> PathBuf {
        self.path.join("checkpoints").join(format!("{process}.{program}.{events}"))
    }

    /// The last checkpoint of a process that is not behind so many events: its program and
    /// its events.
    pub fn last_checkpoint(&self, process: i32, events: u64) -> Option<(u32, u64)> {
        let entries = std::fs::read_dir(self.path.join("checkpoints")).ok()?;
        let parse = |name: &str| {
            let mut parts = name.split('.');
            let of: i32 = parts.next()?.parse().ok()?;
            let found = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            (of == process && found.1 <= events && parts.next().is_none()).then_some(found)
        };
        let found = entries.flatten().filter_map(|entry| parse(entry.file_name().to_str()?));
        found.max_by_key(|(_, events)| *events)
    }

    pub fn files(&self) -> crate::files::Files {
        crate::files::Files::in_directory(&self.path.join("files"))
    }
}

/// Whether there is a recording at a path, if that may be known.
fn is_at(path: &Path) -> Result<bool> {
    match path.join(MANIFEST).try_exists() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let path = path.display();
            let told = format!("{path} may not be read: {error}; its owner can `why pack` it");
            Err(RecordError::NotFound(told))
        }
        found => Ok(found.unwrap_or(false)),
    }
}

/// All of the user's recordings that can be read, the newest last; an error if there may be some,
/// but none can be read.
pub fn list() -> Result<Vec<(Recording, Manifest)>> {
    let root = root()?;
    let entries = match std::fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(RecordError::system(format!("cannot read {}", root.display()))(error));
        }
    };
    let mut refused = None;
    let mut found: Vec<(std::time::SystemTime, Recording, Manifest)> = entries
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let is_there = is_at(&path).unwrap_or_else(|error| {
                refused.get_or_insert(error);
                false
            });
            let recording = Recording::open(&path);
            let manifest = recording.manifest().ok().filter(|_| is_there)?;
            let time = path.join(MANIFEST).metadata().and_then(|m| m.modified());
            Some((time.ok()?, recording, manifest))
        })
        .collect();
    if let (true, Some(error)) = (found.is_empty(), refused) {
        return Err(error);
    }
    found.sort_by_key(|(time, ..)| *time);
    Ok(found.into_iter().map(|(_, recording, manifest)| (recording, manifest)).collect())
}

/// Whether a word is the name of a recording, as far as can be told without reading it.
pub fn exists(name: &Path) -> bool {
    let is_packed = || {
        let mut magic = Magic::default();
        let read = File::open(name).and_then(|mut file| file.read_exact(&mut magic));
        let is_called_so = name.extension().is_some_and(|extension| extension == "why");
        name.is_file() && (is_called_so || read.is_ok() && magic == pack::MAGIC)
    };
    // What is a directory that may not be read is more likely to be one than something else.
    let is_there = |path: &Path| is_at(path).unwrap_or_else(|_| path.is_dir());
    is_there(name) || is_packed() || root().is_ok_and(|root| is_there(&root.join(name)))
}

/// The recording that is meant: a directory, a packed file, one of the user's by name, or
/// the newest finished.
pub fn find(name: Option<&Path>) -> Result<Recording> {
    find_with(name, &mut |_| ())
}

/// The same, for somebody who wants to know how far unpacking has come.
pub fn find_with(name: Option<&Path>, progress: Progress) -> Result<Recording> {
    match name {
        None => {
            let newest = list()?.into_iter().rfind(|(_, manifest)| manifest.finished.is_some());
            newest.map(|(recording, _)| recording).ok_or_else(|| {
                let what = "there is no finished recording yet; make one with `why record -- PROG`";
                RecordError::NotFound(what.to_owned())
            })
        }
        Some(name) => {
            let given = is_at(name);
            if let Ok(true) = given {
                return Ok(Recording::open(name));
            }
            if name.is_file() {
                return unpacked::open(name, progress);
            }
            let path = root()?.join(name);
            if is_at(&path)? {
                return Ok(Recording::open(&path));
            }
            given?;
            Err(RecordError::NotFound(format!(
                "there is no recording {}; `why ls` lists those there are",
                name.display()
            )))
        }
    }
}
