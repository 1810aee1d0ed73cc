//! The words that a program was given when it began: its arguments and its environment.

use crate::questions::{Failure, no_answer};
use crate::replay::{self, How};
use serde::{Deserialize, Serialize};
use why_engine::{Look, Observer, Scene, Then};
use why_record::position::Moment;
use why_record::registers::RSP;
use why_record::store::Recording;

#[derive(Default, Serialize, Deserialize)]
pub struct Words {
    pub arguments: Vec<Word>,
    pub environment: Vec<Word>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Word {
    /// Where it was.
    pub at: u64,
    pub text: Vec<u8>,
}

impl Words {
    pub fn of(recording: &Recording, process: i32) -> Result<Words, Failure> {
        let look = Look::silently(process, Moment::Start, Box::new(Beginning::default()));
        let how = How { look: Some(look), ..How::default() };
        let report = replay::run(recording, how).map_err(no_answer)?;
        let words = report.answer.and_then(|answer| serde_json::from_value(answer).ok());
        Ok(words.unwrap_or_default())
    }

    /// A variable of the environment, as `NAME=VALUE`.
    pub fn variable(&self, name: &str) -> Option<&Word> {
        self.environment.iter().find(|word| {
            let rest = word.text.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"="))
        })
    }
}

/// Looks at the first instruction, when the stack holds what the program was given.
#[derive(Default)]
struct Beginning(Words);

impl Observer for Beginning {
    fn arrived(&mut self, scene: &Scene) -> Then {
        let mut at = scene.registers.0[RSP].wrapping_add(8);
        self.0.arguments = words(scene, &mut at);
        self.0.environment = words(scene, &mut at);
        Then::Enough
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.0).expect("plain data")
    }
}

/// The strings of a list that ends with a null.
fn words(scene: &Scene, at: &mut u64) -> Vec<Word> {
    /// A stack that holds more is damaged.
    const MOST: usize = 1 << 16;
    let mut found = Vec::new();
    while found.len() < MOST {
        let mut pointer = [0; 8];
        let got = scene.read(*at, &mut pointer);
        *at = at.wrapping_add(8);
        let pointer = u64::from_le_bytes(pointer);
        if got < 8 || pointer == 0 {
            break;
        }
        let mut bytes = vec![0; 1 << 17];
        let got = scene.read(pointer, &mut bytes);
        let text = bytes[..got].split(|byte| *byte == 0).next().unwrap_or_default();
        found.push(Word { at: pointer, text: text.to_vec() });
    }
    found
}
