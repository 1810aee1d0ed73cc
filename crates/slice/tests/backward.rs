//! Compared with the naive way: every byte remembers which definition it has last got, and
//! every definition which ones it was computed from.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use why_effects::{Cell, Effects, Operand, Part, Place, Size};
use why_slice::Wanted;
use why_slice::backward::{Backward, Dependences, Executed};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Registers and memory are small, so that instructions meet.
const REGISTERS: u64 = 64;
const MEMORY: u64 = 96;
const BASE: u64 = 0x7fff_ffff_efe0;

struct Step {
    effects: Effects,
    operands: Vec<Range<u64>>,
}

fn random_step(random: &mut Random) -> Step {
    let mut operands = Vec::new();
    let mut ranges = Vec::new();
    for _ in 0..random.below(3) {
        let size = [1, 2, 4, 8, 16][random.below(5) as usize];
        let from = BASE + random.below(MEMORY - size);
        ranges.push(from..from + size);
        let address = (0..random.below(2)).map(|_| some_cells(random, 8)).collect();
        let told = if random.below(4) == 0 { Size::String(1) } else { Size::Bytes(size as u32) };
        operands.push(Operand { address, size: told });
    }
    let place = |random: &mut Random, size: u32| {
        let fitting: Vec<usize> = (0..ranges.len())
            .filter(|operand| ranges[*operand].end - ranges[*operand].start >= u64::from(size))
            .collect();
        if fitting.is_empty() || random.below(2) == 0 {
            return Place::Cells(some_cells(random, size as Cell));
        }
        let operand = fitting[random.below(fitting.len() as u64) as usize];
        let all = (ranges[operand].end - ranges[operand].start) as u32;
        if matches!(operands[operand].size, Size::String(_)) && all == size {
            return Place::String { operand };
        }
        let from = random.below(u64::from(all - size) + 1) as u32;
        Place::Memory { operand, bytes: from..from + size }
    };
    let mut parts = Vec::new();
    for _ in 0..random.below(3) {
        let size = [1, 2, 4, 8][random.below(4) as usize];
        let width = [1, 2, 4, 8][random.below(4) as usize];
        let to = place(random, size);
        let lanes = (0..random.below(3)).map(|_| place(random, size)).collect();
        let whole = (0..random.below(2))
            .map(|_| {
                let size = 1 + random.below(4) as u32;
                place(random, size)
            })
            .collect();
        parts.push(Part { to, lanes, width, whole, frame: random.below(10) == 0 });
    }
    Step { effects: Effects { parts, operands, decides: Vec::new() }, operands: ranges }
}

fn some_cells(random: &mut Random, size: Cell) -> Range<Cell> {
    let from = random.below(REGISTERS - u64::from(size)) as Cell;
    from..from + size
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Byte {
    Cell(Cell),
    Memory(u64),
}

fn bytes(step: &Step, place: &Place) -> Vec<Byte> {
    match place {
        Place::Cells(cells) => cells.clone().map(Byte::Cell).collect(),
        Place::Memory { operand, bytes } => {
            let start = step.operands[*operand].start;
            bytes.clone().map(|byte| Byte::Memory(start + u64::from(byte))).collect()
        }
        Place::String { operand } => step.operands[*operand].clone().map(Byte::Memory).collect(),
    }
}

/// The definition of one byte: by which step, and of which definitions.
struct Definition {
    step: usize,
    frame: bool,
    from: Vec<usize>,
}

/// The naive way, forwards.
fn naive(steps: &[Step], criterion: &[Byte], thin: bool) -> BTreeSet<usize> {
    let mut definitions: Vec<Definition> = Vec::new();
    let mut last: HashMap<Byte, Vec<usize>> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        let mut new: HashMap<Byte, Vec<usize>> = HashMap::new();
        for part in &step.effects.parts {
            for (index, byte) in bytes(step, &part.to).into_iter().enumerate() {
                let mut sources: Vec<Byte> = Vec::new();
                let lane = index as u32 / part.width * part.width;
                for place in &part.lanes {
                    let all = bytes(step, place);
                    let end = all.len().min((lane + part.width) as usize);
                    sources.extend(&all[lane as usize..end]);
                }
                part.whole.iter().for_each(|place| sources.extend(bytes(step, place)));
                if !thin {
                    let places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
                    for place in places {
                        if let Place::Memory { operand, .. } | Place::String { operand } = place {
                            let address = &step.effects.operands[*operand].address;
                            sources.extend(address.iter().cloned().flatten().map(Byte::Cell));
                        }
                    }
                }
                let from = sources.iter().flat_map(|byte| last.get(byte).cloned()).flatten();
                let from = from.collect();
                definitions.push(Definition { step: number, frame: part.frame, from });
                // Where two parts define a byte, either may have.
                new.entry(byte).or_default().push(definitions.len() - 1);
            }
        }
        last.extend(new);
    }
    let mut open: Vec<usize> =
        criterion.iter().flat_map(|byte| last.get(byte).cloned()).flatten().collect();
    let mut seen = BTreeSet::new();
    let mut slice = BTreeSet::new();
    while let Some(definition) = open.pop() {
        let Definition { step, frame, from } = &definitions[definition];
        if !frame && seen.insert(definition) {
            slice.insert(*step);
            open.extend(from);
        }
    }
    slice
}

fn backwards(steps: &[Step], criterion: &[Byte], thin: bool) -> BTreeSet<usize> {
    let mut wanted = Wanted::default();
    for byte in criterion {
        match byte {
            Byte::Cell(cell) => wanted.want_cells(*cell..cell + 1),
            Byte::Memory(at) => wanted.want_memory(*at..at + 1),
        }
    }
    let mut backward = Backward::new(Dependences { thin });
    let steps = steps.iter().enumerate().rev();
    let belongs = steps.filter(|(_, Step { effects, operands })| {
        backward.over(Executed { effects, operands }, &mut wanted)
    });
    belongs.map(|(number, _)| number).collect()
}

/// A byte that two parts of one step define belongs to the first here, so such steps are left
/// out of the comparison: no instruction has them.
fn defines_twice(step: &Step) -> bool {
    let all: Vec<Byte> = step.effects.parts.iter().flat_map(|part| bytes(step, &part.to)).collect();
    let different: BTreeSet<Byte> = all.iter().copied().collect();
    all.len() != different.len()
}

#[test]
fn slices_are_those_of_the_naive_way() {
    let mut random = Random(1);
    let mut sizes = 0;
    for round in 0..3000 {
        let length = 1 + round % 60;
        let steps: Vec<Step> = std::iter::repeat_with(|| random_step(&mut random))
            .filter(|step| !defines_twice(step))
            .take(length)
            .collect();
        let criterion: Vec<Byte> = (0..3)
            .map(|_| match random.below(2) {
                0 => Byte::Cell(random.below(REGISTERS) as Cell),
                _ => Byte::Memory(BASE + random.below(MEMORY)),
            })
            .collect();
        for thin in [false, true] {
            let expected = naive(&steps, &criterion, thin);
            assert_eq!(backwards(&steps, &criterion, thin), expected, "round {round}");
            sizes += expected.len();
        }
    }
    assert!(sizes > 10_000, "{sizes}");
}

#[test]
fn memory_is_wanted_across_pages_and_taken_once() {
    let mut wanted = Wanted::default();
    wanted.want_memory(0xfff0..0x2_0010);
    let mut backward = Backward::default();
    let stores = |at: u64, size: u32| Step {
        effects: Effects {
            parts: vec![Part {
                to: Place::Memory { operand: 0, bytes: 0..size },
                lanes: Vec::new(),
                width: 1,
                whole: Vec::new(),
                frame: false,
            }],
            operands: vec![Operand { address: Vec::new(), size: Size::Bytes(size) }],
            decides: Vec::new(),
        },
        operands: std::iter::once(at..at + u64::from(size)).collect(),
    };
    let mut over = |step: &Step, wanted: &mut Wanted| {
        backward.over(Executed { effects: &step.effects, operands: &step.operands }, wanted)
    };
    assert!(!over(&stores(0xffe0, 16), &mut wanted));
    assert!(over(&stores(0xffff, 2), &mut wanted));
    assert!(!over(&stores(0xffff, 2), &mut wanted));
    assert!(!wanted.wants_nothing());
    assert!(over(&stores(0xff00, 0x2_0000), &mut wanted));
    assert!(wanted.wants_nothing());
}
