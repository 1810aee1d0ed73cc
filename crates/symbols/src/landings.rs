//! Where a function goes on when what it called throws: its landing pads, by the tables that the
//! compiler writes for exceptions.

use crate::{Bytes, Image, LinkAddress};
use gimli::constants as dw;
use gimli::{Pointer, Reader};
use std::ops::Range;

/// Calls within these addresses land there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    pub calls: Range<u64>,
    pub pad: LinkAddress,
}

/// A section of tables, and where it is.
pub(crate) struct Tables {
    pub bytes: Bytes,
    pub address: u64,
}

impl Image {
    /// The landing pads of the part of a function that an address lies in, and what that part is.
    pub fn landings(&self, at: LinkAddress) -> Option<(Range<u64>, Vec<Landing>)> {
        let entry = self.unwind.eh_entry(at.0)?;
        let start = entry.initial_address();
        let part = start..start.checked_add(entry.len())?;
        // What is wrong in a table ends it.
        let landings = match entry.lsda() {
            Some(Pointer::Direct(table)) => self.unwind.landings.of(table, start),
            _ => None,
        };
        Some((part, landings.unwrap_or_default()))
    }
}

impl Tables {
    /// A table: where pads are counted from, types, and then what is known of each call.
    fn of(&self, table: u64, function: u64) -> Option<Vec<Landing>> {
        let mut rest = self.bytes.clone();
        rest.skip(usize::try_from(table.checked_sub(self.address)?).ok()?).ok()?;
        let mut pads_from = function;
        let encoding = gimli::DwEhPe(rest.read_u8().ok()?);
        if encoding != dw::DW_EH_PE_omit {
            let here = self.address + (self.bytes.len() - rest.len()) as u64;
            let value = number(&mut rest, encoding)?;
            pads_from = match encoding.application() {
                dw::DW_EH_PE_absptr => value,
                dw::DW_EH_PE_pcrel => here.wrapping_add(value),
                _ => return None,
            };
        }
        if gimli::DwEhPe(rest.read_u8().ok()?) != dw::DW_EH_PE_omit {
            rest.read_uleb128().ok()?;
        }
        let encoding = gimli::DwEhPe(rest.read_u8().ok()?);
        let size = usize::try_from(rest.read_uleb128().ok()?).ok()?;
        let mut calls = rest.split(size).ok()?;
        let mut landings = Vec::new();
        while !calls.is_empty() {
            let start = function.wrapping_add(number(&mut calls, encoding)?);
            let end = start.wrapping_add(number(&mut calls, encoding)?);
            let pad = number(&mut calls, encoding)?;
            let _action = calls.read_uleb128().ok()?;
            // Otherwise what is thrown there goes on to the caller.
            if pad != 0 {
                let pad = LinkAddress(pads_from.wrapping_add(pad));
                landings.push(Landing { calls: start..end, pad });
            }
        }
        Some(landings)
    }
}

fn number(from: &mut Bytes, encoding: gimli::DwEhPe) -> Option<u64> {
    let read = match encoding.format() {
        dw::DW_EH_PE_absptr | dw::DW_EH_PE_udata8 | dw::DW_EH_PE_sdata8 => from.read_u64(),
        dw::DW_EH_PE_uleb128 => from.read_uleb128(),
        dw::DW_EH_PE_udata2 => from.read_u16().map(u64::from),
        dw::DW_EH_PE_udata4 => from.read_u32().map(u64::from),
        dw::DW_EH_PE_sleb128 => from.read_sleb128().map(|value| value as u64),
        dw::DW_EH_PE_sdata2 => from.read_i16().map(|value| i64::from(value) as u64),
        dw::DW_EH_PE_sdata4 => from.read_i32().map(|value| i64::from(value) as u64),
        _ => return None,
    };
    read.ok()
}
