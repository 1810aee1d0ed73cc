//! What there is to be told of a moment. It is found where the replayed memory is, and told
//! where the user is.

use crate::criterion::Value as Wanted;
use crate::executions::Within;
use crate::images::{Images, SceneMemory, innermost};
use crate::origins::Origins;
use serde::{Deserialize, Serialize};
use why_engine::Scene;
use why_symbols::{Called, End, Kind, Modules, Statement, Variable, Viewpoint};

#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub process: i32,
    pub thread: i32,
    pub position: String,
    /// Of a line, if it is asked for a value: which moment of its execution this is.
    pub moment: Option<LineMoment>,
    /// In the order of their names.
    pub registers: Vec<u64>,
    /// The innermost first.
    pub frames: Vec<FrameSeen>,
    /// Why there are no more frames, unless these are all.
    pub frames_left_out: Option<String>,
    /// The frame whose variables are told: the innermost with source of the program's own,
    /// or with any.
    pub frame: Option<usize>,
    pub value: Option<Result<ValueSeen, String>>,
    /// Where that comes from; without a value, what the next instruction reads.
    pub origins: Origins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineMoment {
    /// Its execution is not over, but nothing is known of the value when it is.
    Before,
    Left,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FrameSeen {
    pub pc: u64,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u64>,
    pub module: Option<String>,
    pub inlined: bool,
    pub signal: bool,
    pub own: bool,
    pub variables: Vec<VariableSeen>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct VariableSeen {
    pub name: String,
    pub parameter: bool,
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub value: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ValueSeen {
    Register {
        name: String,
        value: u64,
    },
    /// As much as can be read.
    Memory {
        address: u64,
        bytes: Vec<u8>,
    },
    Expression {
        expression: String,
        type_: String,
        value: String,
    },
}

impl Answer {
    /// Whether the value that was asked for is not known at that moment.
    pub fn lacks_value(&self) -> bool {
        matches!(self.value, Some(Err(_)))
    }
}

/// Finds an answer.
pub struct Asker {
    pub value: Option<Wanted>,
    /// Values of all frames are wanted, not only of one.
    pub all_variables: bool,
}

/// A function of a frame.
struct Function<'a> {
    frame: &'a why_symbols::Frame,
    /// Which of those that were inlined into each other.
    number: usize,
    called: Called,
    /// Of several that begin where the frame is, the one that it is at.
    statement: Option<&'a Statement>,
}

impl Function<'_> {
    /// Its source is known, or it is of a file that is no system's.
    fn may_be_told(&self) -> bool {
        self.called.line.is_some() || self.called.module.is_some() && !self.called.is_of_system
    }
}

impl Asker {
    /// Of the line that is being executed or has just been left, if one is given: none if its
    /// function's frame has gone. Of several statements that begin here, as they are before the
    /// one of the view, if there is one, has begun.
    pub fn ask(
        &self,
        scene: &Scene,
        images: &mut Images,
        within: Option<&Within>,
        view: Option<u64>,
    ) -> Option<Answer> {
        let modules = &images.modules(scene);
        let memory = &SceneMemory(scene);
        let trace = modules.backtrace(memory, innermost(scene));
        let functions: Vec<Function> = trace
            .frames
            .iter()
            .flat_map(|frame| {
                let at_line = within
                    .filter(|line| frame.cfa == Some(line.cfa) && frame.pc == line.viewpoint.pc);
                let statement = at_line.and_then(|line| line.viewpoint.statement.as_ref());
                let called = modules.called_at(frame, statement).into_iter().enumerate();
                called.map(move |(number, called)| Function { frame, number, called, statement })
            })
            .collect();
        let chosen = match within {
            Some(line) => {
                let is_there = |function: &Function| function.frame.cfa == Some(line.cfa);
                let innermost = functions.iter().position(is_there)?;
                // Behind the line it may be another function that was inlined.
                let is_at_line = functions[innermost].frame.pc == line.viewpoint.pc;
                Some(if is_at_line { innermost + line.viewpoint.functions[0] } else { innermost })
            }
            None => functions
                .iter()
                .position(|function| function.called.is_own)
                // What the program's own code lacks is not made up for by that of its callers.
                .or_else(|| functions.iter().position(Function::may_be_told)),
        };
        // Callers are behind their calls.
        let seen_from = |function: &Function| {
            let is_innermost =
                trace.frames.first().is_some_and(|f| std::ptr::eq(f, function.frame));
            let view = view.filter(|_| is_innermost);
            let statement = function.statement.cloned();
            Viewpoint { view, statement, ..Viewpoint::of(function.frame, function.number) }
        };
        let wanted = |index: usize| self.all_variables || chosen == Some(index);
        let seen = |(index, function): (usize, &Function)| {
            let variables = match wanted(index) {
                true => {
                    let viewpoint = seen_from(function);
                    modules.variables_seen_from(&viewpoint, memory, function.frame, function.number)
                }
                false => Vec::new(),
            };
            let variables = variables.iter().map(|v| variable_seen(modules, memory, v)).collect();
            FrameSeen::new(function, variables)
        };
        let seen_value = self.value.as_ref().map(|wanted| {
            let function = chosen.map_or(functions.first(), |index| functions.get(index));
            let own = function.map(seen_from);
            let viewpoint = within.map(|line| &line.viewpoint).or(own.as_ref());
            value_seen(scene, modules, function.zip(viewpoint), wanted)
        });
        Some(Answer {
            process: scene.process,
            thread: scene.thread,
            position: scene.position.to_string(),
            moment: None,
            registers: scene.registers.0.to_vec(),
            frames: functions.iter().enumerate().map(seen).collect(),
            frames_left_out: match trace.end {
                End::Outermost => None,
                End::NoUnwindInformation => Some("no unwind information".to_owned()),
                End::TooMany => Some("there are more".to_owned()),
            },
            frame: chosen,
            origins: match &seen_value {
                Some(Ok((_, origins))) => origins.clone(),
                Some(Err(_)) => Origins::default(),
                None => Origins::of_instruction(scene),
            },
            value: seen_value.map(|seen| seen.map(|(value, _)| value)),
        })
    }
}

impl FrameSeen {
    fn new(function: &Function, variables: Vec<VariableSeen>) -> FrameSeen {
        let Called { function: name, line, module, inlined, is_own, .. } = function.called.clone();
        FrameSeen {
            pc: function.frame.pc,
            function: name,
            file: line.as_ref().map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            module,
            inlined,
            signal: function.frame.is_signal,
            own: is_own,
            variables,
        }
    }
}

fn variable_seen(modules: &Modules, memory: &SceneMemory, variable: &Variable) -> VariableSeen {
    VariableSeen {
        name: variable.name.clone(),
        parameter: variable.kind == Kind::Parameter,
        type_: variable.value.as_ref().ok().map(|value| value.type_name()),
        value: match &variable.value {
            Ok(value) => value.text(modules, memory),
            Err(unknown) => unknown.to_string(),
        },
    }
}

fn value_seen(
    scene: &Scene,
    modules: &Modules,
    seen_from: Option<(&Function, &Viewpoint)>,
    wanted: &Wanted,
) -> Result<(ValueSeen, Origins), String> {
    let seen = match wanted {
        Wanted::Register(index) => ValueSeen::Register {
            name: why_record::registers::NAMES[*index].to_owned(),
            value: scene.registers.0[*index],
        },
        Wanted::Memory(range) => {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let got = scene.read(range.start, &mut bytes);
            bytes.truncate(got);
            ValueSeen::Memory { address: range.start, bytes }
        }
        Wanted::Expression(expression) => {
            let memory = &SceneMemory(scene);
            let (function, viewpoint) = seen_from.ok_or("no frame is known here")?;
            let value = modules.evaluate(memory, function.frame, viewpoint, expression);
            let value = value.map_err(|error| error.0)?;
            let seen = ValueSeen::Expression {
                expression: expression.to_string(),
                type_: value.type_name(),
                value: value.text(modules, memory),
            };
            return Ok((seen, Origins::of_value(&value, memory)));
        }
    };
    Ok((seen, Origins::of_named(wanted)))
}
