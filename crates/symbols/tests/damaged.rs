//! Tables of strangers may say anything: whatever they say, there is an answer, or none.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use why_symbols::{End, Frame, Image, LineSearch, Memory, Module, Modules};

const SOURCE: &str = "
    #include <stdio.h>
    struct list { struct list *next; int values[3]; unsigned bits : 5; const char *name; };
    static int total(struct list *list, double scale) {
        int sum = 0;
        for (; list; list = list->next) sum += list->values[1] * scale + list->bits;
        return sum;
    }
    int main(int argc, char **argv) {
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
}

fn program(options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("a.c"), directory.path().join("a"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(options).arg("-g").arg("-o").args([&program, &source]);
    assert!(compiler.status().unwrap().success());
    std::fs::read(program).unwrap()
}

/// Asks all there is to ask; how much was answered.
fn ask(bytes: &[u8]) -> usize {
    const AT: u64 = 0x5555_5555_4000;
    let Some(image) = Image::load(bytes, Path::new("/nowhere/a")).map(Rc::new) else {
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
                        let text = variable.value.map(|value| value.text(&modules, &memory));
                        answers += usize::from(text.is_ok());
                    }
                    for expression in ["*list", "list->next->values[1]", "sum", "stdout"] {
                        let expression = expression.parse().unwrap();
                        let value = modules.evaluate(&memory, frame, number, &expression);
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
    for options in [&["-O0"][..], &["-O2"], &["-O1", "-gdwarf-4"]] {
        let bytes = program(options);
        assert!(ask(&bytes) > 2, "{options:?}: the undamaged program has answers");
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        // The tables are in the second half of the file, the headers at both ends.
        let places = bytes.len() / 4..bytes.len();
        for _ in 0..400 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random() % 20 {
                let at = places.start + random() % places.len();
                damaged[at] = random() as u8;
            }
            ask(&damaged);
            damaged.truncate(random() % bytes.len());
            ask(&damaged);
        }
    }
}
