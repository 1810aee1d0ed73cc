//! Tables of strangers may say anything: whatever they say, there is an answer, or none.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use tempfile::TempDir;
use why_symbols::{End, Frame, Image, LineSearch, Memory, Module, Modules, Viewpoint};

const SOURCE: &str = "
    #include <stdio.h>
    struct list { struct list *next; int values[3]; unsigned bits : 5; const char *name; };
    static __thread struct { int count, last; } own = {1, 2};
    static int total(struct list *list, double scale) {
        int sum = 0;
        for (; list; list = list->next) sum += list->values[1] * scale + list->bits;
        own.count += sum;
        return sum;
    }
    int main(int argc, char **argv) {
        int counts[argc][2];
        counts[0][1] = argc;
        _Complex long double both = argc;
        own.last = counts[0][1] + (both != 0);
        struct list last = {0, {1, 2, 3}, 4, \"last\"}, first = {&last, {argc}, 6, argv[0]};
        printf(\"%d\\n\", total(&first, 1.5));
        return 0;
    }";

/// Memory that holds something everywhere, which leads back to the same code.
struct Anything(u64);

impl Memory for Anything {
    fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        let word = self.0.wrapping_add(at % 64).to_le_bytes();
        for (offset, byte) in buffer.iter_mut().enumerate() {
            *byte = word[(at as usize).wrapping_add(offset) % 8];
        }
        buffer.len()
    }

    fn thread_pointer(&self) -> Option<u64> {
        Some(self.0)
    }
}

/// A program, where it was built.
struct Built {
    directory: TempDir,
    bytes: Vec<u8>,
}

impl Built {
    fn new(options: &[&str]) -> Built {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("a.c"), directory.path().join("a"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(options).arg("-g").arg("-o").args([&program, &source]);
        assert!(compiler.current_dir(directory.path()).status().unwrap().success());
        Built { bytes: std::fs::read(program).unwrap(), directory }
    }

    fn ask(&self, bytes: &[u8]) -> usize {
        ask(bytes, &self.directory.path().join("a"))
    }
}

/// Numbers that are the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize
    }

    /// Some bytes of these places are others.
    fn damaged(&mut self, bytes: &[u8], places: std::ops::Range<usize>) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        for _ in 0..1 + self.next() % 20 {
            let at = places.start + self.next() % places.len();
            damaged[at] = self.next() as u8;
        }
        damaged
    }
}

/// Asks all there is to ask; how much was answered.
fn ask(bytes: &[u8], path: &Path) -> usize {
    const AT: u64 = 0x5555_5555_4000;
    let Some(image) = Image::load(bytes, path).map(Rc::new) else {
        return 0;
    };
    let mut search = LineSearch::default();
    image.search_line("a.c", 6, &mut search);
    let entries = image.search_function("total");
    let addresses: Vec<u64> =
        search.addresses.iter().chain(&entries).map(|address| address.0).collect();
    let mut answers = addresses.len();
    for offset in [0x1000, 0] {
        let range = AT + offset..AT + offset + 0x1000;
        let module = Module::new(range, offset, offset != 0, "/a".to_owned(), Rc::clone(&image));
        let modules = Modules(module.into_iter().collect());
        for address in addresses.iter().take(8) {
            let pc = AT + address;
            let memory = Anything(pc);
            let mut registers = [AT + 0x100; 17];
            registers[16] = pc;
            let trace = modules.backtrace(&memory, Frame::innermost(registers, None));
            answers += usize::from(trace.end == End::Outermost);
            for frame in trace.frames.iter().take(3) {
                for number in 0..modules.called(frame).len() {
                    for variable in modules.variables(&memory, frame, number) {
                        let Ok(value) = variable.value else { continue };
                        answers += usize::from(!value.text(&modules, &memory).is_empty());
                        answers += usize::from(!value.origins(&memory).is_empty());
                    }
                    for expression in
                        ["*list", "list->next->values[1]", "sum", "own", "counts", "both", "stdout"]
                    {
                        let expression = expression.parse().unwrap();
                        let value = modules.evaluate(
                            &memory,
                            frame,
                            &Viewpoint::of(frame, number),
                            &expression,
                        );
                        answers += value.map_or(0, |value| value.text(&modules, &memory).len());
                    }
                }
            }
        }
    }
    answers
}

#[test]
fn damaged_tables_are_survived() {
    for options in [
        &["-O0"][..],
        &["-O2"],
        &["-O1", "-gdwarf-4"],
        &["-O0", "-gdwarf-4", "-fdebug-types-section"],
        &["-O2", "-gdwarf-5", "-fdebug-types-section"],
        &["-O0", "-gsplit-dwarf"],
    ] {
        let built = Built::new(options);
        let bytes = &built.bytes;
        assert!(built.ask(bytes) > 2, "{options:?}: the undamaged program has answers");
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        for _ in 0..400 {
            // The tables are in the second half of the file, the headers at both ends.
            let mut damaged = random.damaged(bytes, bytes.len() / 4..bytes.len());
            built.ask(&damaged);
            damaged.truncate(random.next() % bytes.len());
            built.ask(&damaged);
        }
    }
}

#[test]
fn damaged_split_units_are_survived() {
    for options in [
        &["-O2", "-gdwarf-4", "-gsplit-dwarf"][..],
        &["-O0", "-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"],
    ] {
        let built = Built::new(options);
        let entries = std::fs::read_dir(built.directory.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.extension().is_some_and(|is| is == "dwo")).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let whole = built.ask(&built.bytes);
        std::fs::remove_file(&path).unwrap();
        assert!(whole > built.ask(&built.bytes), "{options:?}: there is more in the other file");
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..400 {
            let mut damaged = random.damaged(&bytes, 0..bytes.len());
            std::fs::write(&path, &damaged).unwrap();
            built.ask(&built.bytes);
            damaged.truncate(random.next() % bytes.len());
            std::fs::write(&path, &damaged).unwrap();
            built.ask(&built.bytes);
        }
    }
}
