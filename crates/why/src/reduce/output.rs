//! Where the result is: always whole, the best so far.

use crate::trial::{Failure, no_answer};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use why_trial::Files;

#[derive(Clone)]
pub struct Output {
    inputs: Vec<PathBuf>,
    path: PathBuf,
    /// It is a directory of files.
    several: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", path.display())]
pub struct CannotWrite {
    path: PathBuf,
    error: io::Error,
}

impl Output {
    /// If the input itself would be replaced, it is told what to do.
    pub fn new(
        inputs: &[PathBuf],
        path: Option<PathBuf>,
        several: bool,
        instead: &str,
    ) -> Result<Output, Failure> {
        let path = path.unwrap_or_else(|| beside(&inputs[0], inputs.len() > 1));
        let same = |input: &PathBuf| match (input.canonicalize(), path.canonicalize()) {
            (Ok(input), Ok(path)) => input == path,
            _ => false,
        };
        if inputs.iter().any(same) {
            let message = format!("{} is the input; {instead}", path.display());
            return Err(Failure::Misused(message));
        }
        let output = Output { inputs: inputs.to_vec(), path, several };
        match output.obstacle() {
            None => Ok(output),
            Some(obstacle) => {
                let path = output.path.display();
                Err(no_answer(format!("{path} {obstacle}; -o says where else the result goes")))
            }
        }
    }

    /// What is at the place of the result, if that is not to be replaced.
    fn obstacle(&self) -> Option<String> {
        if !self.several {
            // A device such as /dev/null would be replaced by a file, for everybody.
            let is_other = self.path.exists() && !self.path.is_file();
            let what = if self.path.is_dir() { "is a directory" } else { "is no ordinary file" };
            return is_other.then(|| what.to_owned());
        }
        if self.path.exists() && !self.path.is_dir() {
            return Some("is no directory".to_owned());
        }
        // A directory is replaced as a whole, so it has to be an earlier result.
        let is_input =
            |name: &OsString| self.inputs.iter().any(|input| input.file_name() == Some(name));
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let other = entries.map(|entry| entry.file_name()).find(|name| !is_input(name))?;
        Some(format!("holds more than an earlier result: {}", Path::new(&other).display()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where verdicts are kept while the result is not final.
    pub fn verdicts(&self) -> PathBuf {
        with_suffix(&self.path, ".verdicts")
    }

    /// What was there before is there until all of it is replaced at once.
    pub fn write(&self, files: &Files) -> Result<(), CannotWrite> {
        let cannot = |error| CannotWrite { path: self.path.clone(), error };
        let directory = directory_of(&self.path);
        if let (false, [(_, content)]) = (self.several, files.0.as_slice()) {
            let mut file = tempfile::NamedTempFile::new_in(directory).map_err(cannot)?;
            io::Write::write_all(&mut file, content).map_err(cannot)?;
            make_readable(file.path()).map_err(cannot)?;
            file.persist(&self.path).map_err(|error| cannot(error.error))?;
            return Ok(());
        }
        let new = tempfile::tempdir_in(directory).map_err(cannot)?;
        files.write(new.path()).map_err(cannot)?;
        if self.path.exists() {
            let old = tempfile::tempdir_in(directory).map_err(cannot)?;
            std::fs::rename(&self.path, old.path().join("old")).map_err(cannot)?;
        }
        std::fs::rename(new.keep(), &self.path).map_err(cannot)
    }

    /// Puts the result where the input was.
    pub fn replace_input(&self) -> Result<PathBuf, Failure> {
        let cannot = |error: io::Error| {
            let input = self.inputs[0].display();
            no_answer(format!("cannot replace {input}: {error}; see {}", self.path.display()))
        };
        if !self.several {
            // Whoever may read or execute the input may go on doing so, by whatever name.
            let input = self.inputs[0].canonicalize().map_err(cannot)?;
            let permissions = std::fs::metadata(&input).map_err(cannot)?.permissions();
            std::fs::set_permissions(&self.path, permissions).map_err(cannot)?;
            std::fs::rename(&self.path, &input).map_err(cannot)?;
            return Ok(self.inputs[0].clone());
        }
        for input in &self.inputs {
            let name = input.file_name().expect("inputs have names");
            let reduced = self.path.join(name);
            if input.is_dir() {
                std::fs::remove_dir_all(input).map_err(cannot)?;
            } else {
                std::fs::remove_file(input).map_err(cannot)?;
            }
            if reduced.exists() {
                std::fs::rename(&reduced, input).map_err(cannot)?;
            }
        }
        std::fs::remove_dir_all(&self.path).map_err(cannot)?;
        Ok(self.inputs[0].clone())
    }
}

/// Where a file is, so that another one can take its place at once.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Temporary files are for their owner only; a result is for whom the owner wants.
pub fn make_readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // SAFETY: the call changes nothing but the mask, which is put back at once.
    let mask = unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666 & !mask))
}

/// `dir/name.ext` becomes `dir/name.reduced.ext`; beside the first of several inputs there is a
/// directory `dir/name.reduced`.
fn beside(input: &Path, several: bool) -> PathBuf {
    let mut name = input.file_stem().unwrap_or_default().to_owned();
    name.push(".reduced");
    if let Some(extension) = input.extension().filter(|_| !several) {
        name.push(".");
        name.push(extension);
    }
    input.with_file_name(name)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
