//! Arrays whose length is known only while the program runs: their types tell where it is.

use crate::evaluate::Context;
use crate::locations::Point;
use crate::types::{Shape, constant, count};
use crate::value::{Type, Value};
use crate::{Bytes, Frame, Memory, Modules};
use gimli::AttributeValue;

impl Value {
    /// Whether it is an array of which that is not known.
    pub(crate) fn lacks_length(&self) -> bool {
        matches!(self.shape(), Shape::Array { counts, .. } if counts.iter().any(Option::is_none))
    }
}

impl Modules {
    /// A value of a frame, with its length if it is such an array.
    pub(crate) fn with_length(&self, memory: &dyn Memory, frame: &Frame, value: Value) -> Value {
        let (true, Type::Told(type_)) = (value.lacks_length(), value.type_.clone()) else {
            return value;
        };
        let module = value.module.clone();
        let context = Context {
            memory,
            module: &module,
            unit: &type_.unit,
            frame: Some(frame),
            frame_base: self.frame_base(memory, frame),
            modules: Some(self),
            callers: 0,
        };
        context.with_length(value, Point::instruction(module.linked(frame.lookup())))
    }
}

impl Context<'_> {
    /// The value, with its length if it is such an array.
    pub fn with_length(&self, value: Value, point: Point) -> Value {
        let (true, Type::Told(type_)) = (value.lacks_length(), &value.type_) else {
            return value;
        };
        let units = &self.module.image.units;
        let (Some((array, _)), Shape::Array { element, .. }) = (units.bare(type_), value.shape())
        else {
            return value;
        };
        let own = Context { unit: &array.unit, ..*self };
        let dimensions = units.dimensions(&array).into_iter();
        let counts = dimensions.map(|told| {
            let (told, more) = told?;
            own.length(told, point).and_then(|number| count(number, more))
        });
        Value { type_: Type::ArrayOf(element, counts.collect()), ..value }
    }

    /// A length that is written down as a number, by an expression, or by the variable that has it.
    fn length(&self, told: AttributeValue<Bytes>, point: Point) -> Option<i128> {
        /// No array of a process has more elements.
        const MOST: i128 = 1 << 47;
        let number = match told {
            AttributeValue::Exprloc(expression) => {
                self.number(expression, None).map(|number| i128::from(number.cast_signed()))
            }
            told => constant(&told).or_else(|| {
                let variable = self.module.image.units.referred(self.unit, &told)?;
                let context = Context { unit: &variable.unit, ..*self };
                let value = context.value_as_declared(&variable.entry()?, point).ok()?;
                let Shape::Number { size, .. } = value.shape() else { return None };
                value.integer(self.memory, size, true).ok()
            }),
        };
        number.filter(|number| *number < MOST)
    }
}
