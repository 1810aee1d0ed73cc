//! Tells builds apart: what one has found out about a recording and kept there is of no use to another
//! one, whose crates may see the same differently.

use std::path::Path;

fn main() {
    let crates = why_stamp::within(Path::new("..")).into_iter().map(|path| path.join("src"));
    why_stamp::set("WHY_BUILD", crates.filter(|sources| sources.is_dir()));
}
