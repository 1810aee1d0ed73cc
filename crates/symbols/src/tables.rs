//! The tables of one file, and the units that they have.
//!
//! A program's own file has tables; so has a file that several share ([`crate::shared`]), and each
//! in which the compiler put what the linker need not see ([`crate::split`]).

use crate::units::DieRef;
use crate::{Bytes, Dwarf};
use gimli::{DebugInfoOffset, DebugTypeSignature, UnitHeader, UnitOffset, UnitType};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::{Rc, Weak};

/// A compilation unit, or a part of one, with the tables that it is read by.
pub struct Unit {
    unit: gimli::Unit<Bytes>,
    pub dwarf: Rc<Dwarf>,
    pub tables: Weak<Tables>,
    /// What the program's own file has of it, if it is elsewhere.
    pub skeleton: Option<Rc<Unit>>,
    number: usize,
}

impl Deref for Unit {
    type Target = gimli::Unit<Bytes>;

    fn deref(&self) -> &gimli::Unit<Bytes> {
        &self.unit
    }
}

impl Unit {
    /// What no other unit has.
    pub fn key(&self) -> (usize, usize) {
        (self.tables.as_ptr() as usize, self.number)
    }

    /// The one that lines are told by.
    pub fn with_lines(&self) -> &Unit {
        self.skeleton.as_deref().unwrap_or(self)
    }
}

pub struct Tables {
    pub dwarf: Rc<Dwarf>,
    /// Those of `.debug_info`, by their offsets, and then those of `.debug_types`.
    headers: Vec<UnitHeader<Bytes>>,
    in_info: usize,
    /// None until it is needed; what cannot be read is not there.
    loaded: RefCell<Vec<Option<Option<Rc<Unit>>>>>,
    /// The units that hold but one type, and where in them it is.
    types: OnceCell<HashMap<DebugTypeSignature, (usize, UnitOffset)>>,
    /// Those of a file that several share.
    pub shared: Option<Rc<Tables>>,
}

impl Tables {
    pub fn new(dwarf: Dwarf, shared: Option<Rc<Tables>>) -> Rc<Tables> {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let in_info = headers.len();
        let mut units = dwarf.type_units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let loaded = RefCell::new(vec![None; headers.len()]);
        let types = OnceCell::new();
        Rc::new(Tables { dwarf: Rc::new(dwarf), headers, in_info, loaded, types, shared })
    }

    pub fn len(&self) -> usize {
        self.headers.len()
    }

    pub fn unit(self: &Rc<Self>, number: usize) -> Option<Rc<Unit>> {
        let known = self.loaded.borrow()[number].clone();
        known.unwrap_or_else(|| {
            let unit = self.dwarf.unit(self.headers[number].clone()).ok();
            let unit = unit.map(|unit| Rc::new(self.own(unit, number, None)));
            self.loaded.borrow_mut()[number] = Some(unit.clone());
            unit
        })
    }

    fn own(
        self: &Rc<Self>,
        unit: gimli::Unit<Bytes>,
        number: usize,
        skeleton: Option<Rc<Unit>>,
    ) -> Unit {
        Unit { unit, dwarf: Rc::clone(&self.dwarf), tables: Rc::downgrade(self), skeleton, number }
    }

    /// The unit of which another file has only a skeleton.
    pub fn completed(self: &Rc<Self>, skeleton: &Rc<Unit>) -> Option<Rc<Unit>> {
        (0..self.in_info).find_map(|number| {
            let mut unit = self.dwarf.unit(self.headers[number].clone()).ok()?;
            let is_it = unit.dwo_id.is_some() && unit.dwo_id == skeleton.dwo_id;
            is_it.then(|| {
                unit.copy_relocated_attributes(skeleton);
                Rc::new(self.own(unit, number, Some(Rc::clone(skeleton))))
            })
        })
    }

    pub fn at_offset(self: &Rc<Self>, offset: DebugInfoOffset) -> Option<DieRef> {
        let start = |header: &UnitHeader<Bytes>| header.debug_info_offset().map_or(0, |at| at.0);
        let in_info = &self.headers[..self.in_info];
        let behind = in_info.partition_point(|header| start(header) <= offset.0);
        let number = behind.checked_sub(1)?;
        let inside = UnitOffset(offset.0 - start(&in_info[number]));
        Some(DieRef { unit: self.unit(number)?, offset: inside })
    }

    /// A type that has a unit of its own.
    pub fn type_of_signature(self: &Rc<Self>, signature: DebugTypeSignature) -> Option<DieRef> {
        let types = self.types.get_or_init(|| {
            let of = |(number, header): (usize, &UnitHeader<Bytes>)| match header.type_() {
                UnitType::Type { type_signature, type_offset }
                | UnitType::SplitType { type_signature, type_offset } => {
                    Some((type_signature, (number, type_offset)))
                }
                _ => None,
            };
            self.headers.iter().enumerate().filter_map(of).collect()
        });
        let (number, offset) = *types.get(&signature)?;
        Some(DieRef { unit: self.unit(number)?, offset })
    }
}
