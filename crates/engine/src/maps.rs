//! The target's memory map as the kernel tells it.

use crate::error::{EngineError, Result};
use crate::memory::Address;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<Address>,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    pub shared: bool,
    pub offset: u64,
    pub device: String,
    pub inode: u64,
    pub name: String,
}

pub fn read(tid: i32) -> Result<Vec<Mapping>> {
    let path = format!("/proc/{tid}/maps");
    let text = std::fs::read(&path).map_err(EngineError::system(format!("reading {path}")))?;
    Ok(parse_all(&String::from_utf8_lossy(&text)))
}

/// Which mappings grow downwards when memory below them is used.
pub fn growing(tid: i32) -> Result<Vec<Range<Address>>> {
    let path = format!("/proc/{tid}/smaps");
    let text = std::fs::read(&path).map_err(EngineError::system(format!("reading {path}")))?;
    let (mut growing, mut last) = (Vec::new(), None);
    for line in String::from_utf8_lossy(&text).lines() {
        match line.strip_prefix("VmFlags:") {
            Some(flags) if flags.split_whitespace().any(|flag| flag == "gd") => {
                growing.extend(last.take());
            }
            _ => last = parse(line).map(|mapping| mapping.range).or(last),
        }
    }
    Ok(growing)
}

pub fn parse_all(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse).collect()
}

/// `start-end rwxp offset device inode name`
fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let flags = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let device = fields.next()?.to_owned();
    let inode = fields.next()?.parse().ok()?;
    let name = fields.next().unwrap_or("").trim_start().to_owned();
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        readable: flags[0] == b'r',
        writable: flags[1] == b'w',
        executable: flags[2] == b'x',
        shared: flags[3] == b's',
        offset,
        device,
        inode,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let line = "7f00-7f10 r-xp 00000010 fe:00 1234                /lib/a b.so";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.range, 0x7f00..0x7f10);
        assert!(mapping.readable && mapping.executable && !mapping.writable && !mapping.shared);
        assert_eq!((mapping.offset, mapping.inode), (0x10, 1234));
        assert_eq!(mapping.name, "/lib/a b.so");
    }
}
