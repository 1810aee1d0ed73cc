//! What the lines of a slice had made: a session of the replay goes to each of them.

use crate::images::{Images, SceneMemory, innermost};
use crate::replay::{self, How};
use iced_x86::{Decoder, DecoderOptions, OpKind};
use serde::{Deserialize, Serialize};
use why_effects::Cell;
use why_engine::{EngineError, Look, Observer, Report, Scene, Then};
use why_record::position::{Moment, Position};
use why_record::store::Recording;
use why_slice::backward::Area;
use why_symbols::{Frame, Maker, Modules, Wrote};

/// What was made, and when: right behind the instruction that made it, or, if that is told by a
/// call, where the thread has come back from that.
pub struct Asked {
    pub moment: Position,
    pub thread: u64,
    pub area: Area,
    /// The address of the instruction.
    pub maker: u64,
    pub call: Option<u64>,
}

/// A variable as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub name: String,
    pub value: String,
}

/// What was made each time, where it has a name.
pub fn ask(
    recording: &Recording,
    process: i32,
    asked: Vec<Asked>,
) -> Result<(Vec<Option<Seen>>, Option<Report>), EngineError> {
    let mut order: Vec<usize> = (0..asked.len()).collect();
    order.sort_by_key(|number| (asked[*number].moment, *number));
    let Some(first) = order.first().map(|number| Moment::At(asked[*number].moment)) else {
        return Ok((Vec::new(), None));
    };
    let count = asked.len();
    let images = Images::new(recording.files());
    let answers = vec![None; count];
    let values = Values { images, asked, order, next: 0, answers };
    let from = replay::events_before(first);
    let look = Some(Look::session(process, first, Box::new(values)));
    let mut report = replay::run(recording, How { from, look, ..How::default() })?;
    let answers: Option<Vec<Option<Seen>>> =
        report.answer.take().and_then(|answer| serde_json::from_value(answer).ok());
    Ok((answers.unwrap_or_else(|| vec![None; count]), Some(report)))
}

struct Values {
    images: Images,
    asked: Vec<Asked>,
    /// By time.
    order: Vec<usize>,
    /// Which of the order comes next.
    next: usize,
    answers: Vec<Option<Seen>>,
}

impl Values {
    fn go_on(&mut self) -> Then {
        self.next += 1;
        match self.order.get(self.next) {
            Some(number) => Then::GoTo(Moment::At(self.asked[*number].moment)),
            None => Then::Enough,
        }
    }
}

impl Observer for Values {
    fn arrived(&mut self, scene: &Scene) -> Then {
        let number = self.order[self.next];
        let asked = &self.asked[number];
        let modules = self.images.modules(scene);
        self.answers[number] = seen(scene, &modules, asked);
        self.go_on()
    }

    fn missed(&mut self, _: &str) -> Option<Then> {
        Some(self.go_on())
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.answers).expect("plain data")
    }
}

fn seen(scene: &Scene, modules: &Modules, asked: &Asked) -> Option<Seen> {
    /// What is made is seldom named by one who called from farther away.
    const FRAMES: usize = 12;
    let memory = &SceneMemory(scene);
    let frames = match scene.thread as u64 == asked.thread {
        true => modules.backtrace(memory, innermost(scene)).frames,
        false => Vec::new(),
    };
    let mut frames = asked.seen_from_line(frames);
    frames.truncate(FRAMES);
    let maker = Maker { at: asked.maker, wrote: wrote(scene, asked.maker) };
    let maker = Some(maker).filter(|_| asked.call.is_none());
    let named = match &asked.area {
        Area::Memory(bytes) => modules.name_at(memory, &frames, maker, bytes.start)?,
        // What is there when a call has come back need not be what was made.
        Area::Cells(_) if asked.call.is_some() => return None,
        Area::Cells(cells) => {
            modules.name_in_register(memory, frames.first()?, maker, in_dwarf(cells.start)?)?
        }
    };
    Some(Seen { name: named.name(), value: named.text(modules, memory) })
}

/// What the instruction at an address writes to memory, if it is one number.
fn wrote(scene: &Scene, at: u64) -> Option<Wrote> {
    use iced_x86::MemorySize::{Float32, Float64, Float80};
    let mut bytes = [0; 15];
    let got = scene.read(at, &mut bytes);
    let insn = Decoder::with_ip(64, &bytes[..got], at, DecoderOptions::NONE).decode();
    let size = Some(insn.memory_size())
        .filter(|size| insn.op0_kind() == OpKind::Memory && !size.is_packed())?;
    let is_float = [Float32, Float64, Float80].contains(&size);
    Some(Wrote { size: size.size() as u64, is_float })
}

impl Asked {
    /// The frames of those who have names for it: of the line's function, and of those that led
    /// there. If the call is not among them, as where an exception is about to leave it, nobody
    /// knows where they are.
    fn seen_from_line(&self, mut frames: Vec<Frame>) -> Vec<Frame> {
        /// No instruction is longer.
        const LONGEST: u64 = 15;
        let Some(call) = self.call else { return frames };
        let is_behind = |frame: &Frame| (1..=LONGEST).contains(&frame.pc.wrapping_sub(call));
        let line = frames.iter().position(is_behind).unwrap_or(frames.len());
        frames.drain(..line);
        // What is behind the call may be of another line.
        frames.iter_mut().take(1).for_each(|line| line.is_exact = false);
        frames
    }
}

/// The number in DWARF of the register that a byte is of.
fn in_dwarf(cell: Cell) -> Option<u16> {
    const ORDER: [u16; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    match cell {
        0..64 => Some(ORDER[usize::from(cell / 8)]),
        64..128 => Some(cell / 8),
        256..1280 => Some(17 + (cell - 256) / 64),
        _ => None,
    }
}
