//! Names for what is at an address or in a register: the way to it from a variable.

use crate::evaluate::Origin;
use crate::strings;
use crate::types::{Member, Shape};
use crate::units::DieRef;
use crate::value::Value;
use crate::{Expression, Frame, Memory, Modules, Viewpoint};
use gimli::UnitOffset;
use gimli::constants as dw;

/// A part of a variable, and how to write it; of several members that share a byte, each.
pub struct Named(Vec<(String, Value)>);

impl Named {
    fn one(name: String, value: Value) -> Named {
        Named(vec![(name, value)])
    }

    /// How to write it.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// What it holds.
    pub fn text(&self, modules: &Modules, memory: &dyn Memory) -> String {
        let texts: Vec<String> =
            self.0.iter().map(|(_, value)| value.text(modules, memory)).collect();
        texts.join(", ")
    }
}

/// An instruction that has just made something.
#[derive(Clone, Copy)]
pub struct Maker {
    /// Its address.
    pub at: u64,
    /// What it wrote to memory, if it wrote one number.
    pub wrote: Option<Wrote>,
}

#[derive(Clone, Copy)]
pub struct Wrote {
    pub size: u64,
    /// It was written as one with a fraction.
    pub is_float: bool,
}

/// Nothing is nested deeper.
const MOST_DEPTH: usize = 16;

impl Value {
    /// Whether it lies in memory around an address: how many bytes in front of it it begins.
    pub(crate) fn around(&self, at: u64) -> Option<u64> {
        let offset = at.checked_sub(self.address()?)?;
        (offset < self.size()?).then_some(offset)
    }

    /// Whether there is nothing in it, as in classes that only have functions: what is at the same
    /// address is something else then.
    fn is_empty(&self, memory: &dyn Memory, depth: usize) -> bool {
        match self.shape() {
            Shape::Record(record) if record.variants.is_none() && depth > 0 => {
                let mut members = record.members.iter().map(|member| self.member(memory, member));
                members.all(|member| member.is_empty(memory, depth - 1))
            }
            _ => false,
        }
    }

    /// Whether it is text, and a byte of it is among what is told of that.
    fn is_text_with(&self, memory: &dyn Memory, element: &DieRef, row: u64, offset: u64) -> bool {
        /// Longer text is not told as a whole.
        const MOST: u64 = 4096;
        let before = offset.checked_rem(row).unwrap_or(offset);
        let start = self.address().map(|start| start.wrapping_add(offset - before));
        strings::is_character(self.units(), element)
            && before < MOST
            && start
                .and_then(|start| memory.read_exact(start, before as usize))
                .is_some_and(|bytes| !bytes.contains(&0))
    }

    /// How well what was written suits it: the less, the better.
    fn unlike(&self, wrote: Option<Wrote>) -> u8 {
        // Members of some bits are told together, in their order.
        if self.bits.is_some() {
            return 0;
        }
        let Some(wrote) = wrote.filter(|wrote| self.size() == Some(wrote.size)) else { return 2 };
        let is_float = matches!(self.shape(), Shape::Number { encoding: dw::DW_ATE_float, .. });
        u8::from(is_float != wrote.is_float)
    }

    /// The innermost part so many bytes behind its beginning; of a union the member that suits what was
    /// written.
    fn part_at(
        self,
        memory: &dyn Memory,
        name: String,
        offset: u64,
        wrote: Option<Wrote>,
    ) -> Named {
        let (mut name, mut value) = (name, self);
        let mut offset = offset;
        for _ in 0..MOST_DEPTH {
            let (suffix, part, inside) = match value.shape() {
                Shape::Record(record) => {
                    let Some(at) = value.address().map(|start| start.wrapping_add(offset)) else {
                        break;
                    };
                    let parts = record.members.iter();
                    let parts = parts.map(|member| (member, value.member(memory, member)));
                    let around = parts.filter_map(|(member, part)| {
                        let offset = part.around(at)?;
                        (!part.is_empty(memory, MOST_DEPTH)).then_some((member, part, offset))
                    });
                    let mut around: Vec<_> = around.collect();
                    let unlike = |(_, (_, part, _)): &(usize, &(_, Value, _))| part.unlike(wrote);
                    let best = around.iter().enumerate().min_by_key(unlike);
                    let Some(best) = best.map(|(number, _)| number) else { break };
                    let (member, part, inside) = around.remove(best);
                    let suffix = |member: &Member| match &member.name {
                        Some(name) if !member.is_base => format!(".{name}"),
                        _ => String::new(),
                    };
                    if part.bits.is_some() {
                        // Of several in one byte nobody knows which one was meant.
                        let all = [(member, part, inside)].into_iter().chain(around);
                        let all =
                            all.map(|(member, part, _)| (name.clone() + &suffix(member), part));
                        return Named(all.collect());
                    }
                    (suffix(member), part, inside)
                }
                Shape::Array { element, counts } => {
                    // How long the outermost dimension is makes no difference.
                    let inner = counts.iter().skip(1).copied().collect::<Option<Vec<u64>>>();
                    let Some(inner) = inner.filter(|_| !counts.is_empty()) else { break };
                    let row = inner.last().copied().unwrap_or(0);
                    if value.is_text_with(memory, &element, row, offset) {
                        break;
                    }
                    let size = value.units().size(&element).unwrap_or(0);
                    let Some(number) = offset.checked_div(size) else { break };
                    let part = value.part(element, number * size, None);
                    (indices(number, &inner), part, offset - number * size)
                }
                _ => break,
            };
            (name, value, offset) = (name + &suffix, part, inside);
        }
        Named::one(name, value)
    }
}

impl Modules {
    /// What is at an address, by the program's own variables: of the functions of some frames,
    /// the innermost first, and those that belong to no frame; what pointers among them point to as well.
    /// In the innermost frame an instruction may have made it, which is known by its address.
    pub fn name_at(
        &self,
        memory: &dyn Memory,
        frames: &[Frame],
        maker: Option<Maker>,
        at: u64,
    ) -> Option<Named> {
        let mut pointers = Vec::new();
        let wrote = maker.and_then(|maker| maker.wrote);
        for (number, frame) in frames.iter().enumerate() {
            for viewpoint in self.viewpoints(frame, maker.filter(|_| number == 0)) {
                let function = viewpoint.functions[0];
                for variable in self.variables_seen_from(&viewpoint, memory, frame, function) {
                    let Ok(value) = variable.value else { continue };
                    if let Some(offset) = value.around(at) {
                        return Some(value.part_at(memory, variable.name, offset, wrote));
                    }
                    pointers.push((variable.name, value));
                }
            }
        }
        self.global_at(memory, at, wrote).or_else(|| pointed_to(memory, pointers, at, wrote))
    }

    /// From where the program's own functions that a frame is in are looked at: from the
    /// instruction that has just made something, if one is told. What is behind it may be of other
    /// functions, which were inlined there, or of blocks that begin with what it made.
    fn viewpoints(&self, frame: &Frame, maker: Option<Maker>) -> Vec<Viewpoint> {
        let own = |frame: &Frame| -> Vec<Viewpoint> {
            let functions = self.called(frame).into_iter().enumerate();
            let own = functions.filter(|(_, called)| called.is_own);
            own.map(|(function, _)| Viewpoint::of(frame, function)).collect()
        };
        let behind = own(frame);
        let maker = maker.map(|maker| maker.at);
        let Some(maker) = maker.filter(|maker| self.are_of_one(*maker, frame.lookup())) else {
            return behind;
        };
        let of_maker = self.functions_at(maker);
        let goes_on = |viewpoint: &Viewpoint| {
            let functions = self.functions_at(viewpoint.pc);
            functions.get(viewpoint.functions[0]).is_some_and(|it| of_maker.contains(it))
        };
        let at_maker = Frame { pc: maker, is_exact: true, ..frame.clone() };
        own(&at_maker).into_iter().chain(behind.into_iter().filter(goes_on)).collect()
    }

    /// Whether two addresses are of the same function, whatever was inlined there.
    fn are_of_one(&self, one: u64, other: u64) -> bool {
        let entry = |address: u64| {
            let module = self.at(address)?;
            module.image.function(module.linked(address)).map(|entry| module.mapped(entry))
        };
        entry(one).is_some() && entry(one) == entry(other)
    }

    /// The functions that an address lies in, the innermost first, by their entries.
    fn functions_at(&self, address: u64) -> Vec<((usize, usize), UnitOffset)> {
        let scopes = self.at(address).map(|module| {
            let scopes = module.image.units.scopes(module.linked(address)).into_iter();
            scopes.map(|scope| (scope.function.unit.key(), scope.function.offset)).collect()
        });
        scopes.unwrap_or_default()
    }

    /// The variable around an address that belongs to no frame.
    fn global_at(&self, memory: &dyn Memory, at: u64, wrote: Option<Wrote>) -> Option<Named> {
        // Variables lie in parts of a file that are no code, and mostly in none that is mapped.
        let own = self.files().into_iter().filter(|module| !module.image.is_of_system);
        let named = own.into_iter().find_map(|module| {
            let (name, _) = module.image.object_at(module.linked(at))?;
            Some((module, name))
        });
        let (module, name) = named?;
        let value = self.global_around(memory, module, &name, at)?;
        let offset = value.around(at)?;
        Some(value.part_at(memory, name, offset, wrote))
    }

    /// The variable of a function of the program's own that a register holds, where an instruction
    /// has just written it.
    pub fn name_in_register(
        &self,
        memory: &dyn Memory,
        frame: &Frame,
        maker: Option<Maker>,
        register: u16,
    ) -> Option<Named> {
        let holds = |value: &Value| {
            let origins = value.origins(memory);
            let of_register = |o: &Origin| matches!(o, Origin::Register(r, _) if *r == register);
            !origins.is_empty() && origins.iter().all(of_register)
        };
        let viewpoints = self.viewpoints(frame, maker);
        let named = |view| {
            let mut all = viewpoints.iter().flat_map(|viewpoint| {
                let viewpoint = Viewpoint { view, ..viewpoint.clone() };
                self.variables_seen_from(&viewpoint, memory, frame, viewpoint.functions[0])
            });
            all.find_map(|variable| {
                let value = variable.value.ok().filter(holds)?;
                Some((variable.name, value))
            })
        };
        // A statement that begins here, without an instruction of its own so far, may give the
        // register to another variable. What is computed from a register was not made: where code
        // was moved, that is how what its statement has not made yet is still told.
        let named = |view| named(view).filter(|(_, value)| !value.is_computed());
        named(Some(0)).or_else(|| named(None)).map(|(name, value)| Named::one(name, value))
    }
}

/// How the element is written that has a number in an array, of which inner dimensions are so long.
fn indices(number: u64, inner: &[u64]) -> String {
    let (mut number, mut written) = (number, String::new());
    for count in inner.iter().rev() {
        written = format!("[{}]{written}", number.checked_rem(*count).unwrap_or(0));
        number = number.checked_div(*count).unwrap_or(0);
    }
    format!("[{number}]{written}")
}

fn pointed_to(
    memory: &dyn Memory,
    pointers: Vec<(String, Value)>,
    at: u64,
    wrote: Option<Wrote>,
) -> Option<Named> {
    pointers.into_iter().find_map(|(name, value)| {
        let target = value.pointed_to(memory).ok()??;
        let offset = target.around(at)?;
        let is_record = matches!(target.shape(), Shape::Record(_));
        let Named(parts) = target.part_at(memory, String::new(), offset, wrote);
        let named = |(part, value): (String, Value)| {
            let name = match part.strip_prefix('.') {
                Some(member) if is_record => format!("{name}->{member}"),
                _ => format!("*{name}"),
            };
            // Only what can be asked for like that.
            name.parse::<Expression>().ok()?;
            Some((name, value))
        };
        parts.into_iter().map(named).collect::<Option<Vec<_>>>().map(Named)
    })
}
