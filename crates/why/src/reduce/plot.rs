//! The size over the tests, as a drawing. Both axes are logarithmic: what matters happens in
//! the first tests, and in the last bytes.

use crate::trial::{Failure, no_answer};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;

pub struct Plot {
    path: PathBuf,
    file: File,
}

impl Plot {
    /// Whether it can be written is known before there is anything to draw.
    pub fn create(path: &Path) -> Result<Plot, Failure> {
        let file = File::create(path).map_err(|error| cannot(path, error))?;
        Ok(Plot { path: path.to_owned(), file })
    }

    pub fn draw(&mut self, sizes: &[(u64, usize)]) -> Result<(), Failure> {
        self.file.write_all(svg(sizes).as_bytes()).map_err(|error| cannot(&self.path, error))
    }
}

fn cannot(path: &Path, error: io::Error) -> Failure {
    no_answer(format!("cannot write {}: {error}", path.display()))
}

fn svg(sizes: &[(u64, usize)]) -> String {
    let tests = sizes.iter().map(|(test, _)| *test).max().unwrap_or(0);
    let bytes = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
    let along = |value: f64, most: f64| (value + 1.0).log10() / (most + 1.0).log10().max(0.1);
    let x = |test: u64| MARGIN + along(test as f64, tests as f64) * (WIDTH - 2.0 * MARGIN);
    let y =
        |size: usize| HEIGHT - MARGIN - along(size as f64, bytes as f64) * (HEIGHT - 2.0 * MARGIN);
    let mut path = String::new();
    for (index, &(test, size)) in sizes.iter().enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{:.1} {:.1}", x(test), y(size));
    }
    let mut marks = String::new();
    let powers = |most: u64| (0..20).map(|power| 10_u64.pow(power)).take_while(move |&p| p <= most);
    for test in powers(tests) {
        let _ = writeln!(
            marks,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{test}</text>"#,
            x(test),
            HEIGHT - MARGIN + 20.0
        );
    }
    for size in powers(bytes as u64) {
        let _ = writeln!(
            marks,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{size}</text>"#,
            MARGIN - 8.0,
            y(size as usize) + 4.0
        );
    }
    let (right, bottom, middle) = (WIDTH - MARGIN, HEIGHT - MARGIN, WIDTH / 2.0);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<path d="M{MARGIN} {MARGIN}V{bottom}H{right}" fill="none" stroke="gray"/>
{marks}<text x="{middle}" y="{}" text-anchor="middle">tests</text>
<text x="{MARGIN}" y="{}">bytes</text>
<path d="{path}" fill="none" stroke="#0060c0" stroke-width="2"/>
</svg>
"##,
        HEIGHT - 15.0,
        MARGIN - 20.0
    )
}
