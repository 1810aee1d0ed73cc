//! Functions within functions: what they use of those around them.

use crate::evaluate::Context;
use crate::{Frame, Memory, Modules, Variable};
use gimli::constants as dw;

/// Nobody nests them deeper.
const MOST_DEPTH: usize = 16;

impl Modules {
    /// A variable of the functions around that of a frame, from the innermost out.
    pub(crate) fn variable_around(
        &self,
        memory: &dyn Memory,
        frame: &Frame,
        name: &str,
    ) -> Option<Variable> {
        let mut frame = frame.clone();
        for _ in 0..MOST_DEPTH {
            frame = self.frame_around(memory, &frame)?;
            let function = self.called(&frame).len().checked_sub(1)?;
            let variables = self.variables(memory, &frame, function).into_iter().rev();
            let found = variables.into_iter().find(|variable| variable.name == name);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The frame of the function around that of a frame, which knows it by what that one tells its
    /// places from.
    fn frame_around(&self, memory: &dyn Memory, frame: &Frame) -> Option<Frame> {
        let module = self.at(frame.lookup())?;
        let address = module.linked(frame.lookup());
        let function = module.image.units.scopes(address).pop()?.function;
        let link = function.entry()?.attr_value(dw::DW_AT_static_link)?;
        let context = Context {
            memory,
            module,
            unit: &function.unit,
            frame: Some(frame),
            frame_base: self.frame_base(memory, frame),
            modules: Some(self),
            callers: 0,
        };
        let base = context.number(context.expression(link, address)?, None);
        let callers = self.backtrace(memory, frame.clone()).frames.into_iter().skip(1);
        base.and_then(|base| callers.into_iter().find(|f| self.frame_base(memory, f) == Some(base)))
    }
}
