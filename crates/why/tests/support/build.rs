//! Builds a fixture, once for each state of its source and command: the result
//! stays under `target/fixtures`, and a second test run builds nothing.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

use crate::support::fixture::{self, Fixture};
use crate::support::package;

/// The program's path.
pub fn build(fixture: &Fixture) -> Result<PathBuf, String> {
    let recipe = recipe(fixture)?;
    let dir = target_dir().join("fixtures").join(&fixture.topic).join(format!(
        "{}-{}-{:016x}",
        fixture.name,
        fixture.variant,
        key(fixture, &recipe)
    ));
    let out = dir.join(&fixture.name);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let _lock = lock(&dir.join("lock"))?;
    let done = dir.join("built");
    if !done.exists() {
        match &recipe {
            Recipe::Copy => copy_script(&fixture.source, &out)?,
            Recipe::Shell(command) => shell(fixture, command, &out)?,
        }
        fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(out)
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().expect("target/tmp has a parent").into()
}

#[derive(Hash)]
enum Recipe {
    /// A script is run by its own `#!` line.
    Copy,
    /// A shell command with `{src}`, `{out}` and `{check}` still in it.
    Shell(String),
}

fn recipe(fixture: &Fixture) -> Result<Recipe, String> {
    let extension = fixture.source.extension().and_then(OsStr::to_str).unwrap_or("");
    let default = match extension {
        "c" | "S" | "s" => "cc -O1 -g -pthread -I{check} {src} -o {out}",
        "cc" | "cpp" => "c++ -O1 -g -pthread -I{check} {src} -o {out}",
        "rs" => "rustc --edition 2024 -C opt-level=1 -g {src} -o {out}",
        "go" => "go build -o {out} {src}",
        _ if is_script(&fixture.source) && fixture.directives.build.is_none() => {
            return Ok(Recipe::Copy);
        }
        other => {
            return Err(format!(
                ".{other} has no default build command; add the directive `build`"
            ));
        }
    };
    let command = fixture.directives.build.as_deref().unwrap_or(default);
    vary(command, &fixture.variant, extension).map(Recipe::Shell)
}

fn is_script(source: &Path) -> bool {
    fs::read(source).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

/// Flags go directly before `{src}`: after the command's own, so that they win.
fn vary(command: &str, variant: &str, extension: &str) -> Result<String, String> {
    let flags = match (variant, extension) {
        ("default", _) => return Ok(command.into()),
        ("musl", "c" | "S" | "s") => return Ok(with_compiler(command, "musl-gcc")),
        ("static", "rs") => "-C target-feature=+crt-static -C relocation-model=static",
        ("static-pie", "rs") => "-C target-feature=+crt-static",
        ("no-pie", "rs") => "-C relocation-model=static",
        ("pie", "rs") => "-C relocation-model=pie",
        ("O0", "rs") => "-C opt-level=0",
        ("O2", "rs") => "-C opt-level=2",
        ("O3", "rs") => "-C opt-level=3",
        ("static", _) => "-static",
        ("static-pie", _) => "-fPIE -static-pie",
        ("pie", _) => "-fPIE -pie",
        ("no-pie", _) => "-fno-pie -no-pie",
        ("O0", _) => "-O0",
        ("O2", _) => "-O2",
        ("O3", _) => "-O3",
        _ => return Err(format!("unknown variant {variant} for a .{extension} file")),
    };
    Ok(command.replacen("{src}", &format!("{flags} {{src}}"), 1))
}

fn with_compiler(command: &str, compiler: &str) -> String {
    let rest = command.split_once(' ').map_or("", |(_, rest)| rest);
    format!("{compiler} {rest}")
}

/// Changes whenever anything the program is made from does; headers may be
/// included by any fixture of their topic.
fn key(fixture: &Fixture, recipe: &Recipe) -> u64 {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    let topic = fixture.source.parent().expect("a fixture lies in its topic");
    let mut sources = vec![fixture.source.clone()];
    for dir in [fixture::root(), topic.into()] {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        sources.extend(entries.map(|entry| entry.path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == "h" || extension == "inc")
        }));
    }
    sources.sort();
    for source in sources {
        fs::read(source).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}

/// Several test targets, or two runs of them, may want the same program.
fn lock(path: &Path) -> Result<Flock<fs::File>, String> {
    let file = fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| format!("{}: {error}", path.display()))
}

fn copy_script(source: &Path, out: &Path) -> Result<(), String> {
    fs::copy(source, out)
        .and_then(|_| fs::set_permissions(out, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", out.display()))
}

fn shell(fixture: &Fixture, command: &str, out: &Path) -> Result<(), String> {
    let command = command
        .replace("{src}", &quoted(&fixture.source))
        .replace("{out}", &quoted(out))
        .replace("{check}", &quoted(&fixture::root()));
    package::find(command.split_whitespace().next().unwrap_or(""))?;
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(out.parent().expect("{out} lies in its directory"))
        .env("GOCACHE", target_dir().join("fixtures/go-cache"))
        .env("GO111MODULE", "off")
        .output()
        .map_err(|error| format!("sh: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(format!("the build failed: {command}\n{messages}"))
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}
