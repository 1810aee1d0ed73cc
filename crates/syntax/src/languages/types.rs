//! What a grammar publishes of its symbols: which parts each has, by what name, which of
//! them it needs, and what may stand in their places.

use super::Language;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

/// The parts that a symbol has under one name, or under none.
pub(super) struct Slot {
    pub required: bool,
    pub multiple: bool,
    /// The symbols that may stand there.
    pub types: Vec<String>,
}

#[derive(Default)]
pub(super) struct Types {
    symbols: FxHashMap<String, Symbol>,
}

struct Symbol {
    fields: FxHashMap<String, Slot>,
    others: Option<Slot>,
}

#[derive(Deserialize)]
struct NodeType {
    #[serde(rename = "type")]
    name: String,
    #[serde(default)]
    fields: FxHashMap<String, PublishedSlot>,
    children: Option<PublishedSlot>,
    #[serde(default)]
    subtypes: Vec<TypeName>,
}

#[derive(Deserialize)]
struct PublishedSlot {
    required: bool,
    multiple: bool,
    types: Vec<TypeName>,
}

#[derive(Deserialize)]
struct TypeName {
    #[serde(rename = "type")]
    name: String,
    named: bool,
}

impl Types {
    pub fn read(language: &Language) -> Types {
        // What a crate was built with is not a stranger's; without it everything is optional.
        let Ok(all) = serde_json::from_str::<Vec<NodeType>>(language.node_types) else {
            return Types::default();
        };
        let of_super: FxHashMap<&str, &[TypeName]> =
            all.iter().map(|node| (node.name.as_str(), node.subtypes.as_slice())).collect();
        let slot = |slot: &PublishedSlot| Slot {
            required: slot.required,
            multiple: slot.multiple,
            types: concrete(&slot.types, &of_super),
        };
        let symbol = |node: &NodeType| Symbol {
            fields: node.fields.iter().map(|(name, field)| (name.clone(), slot(field))).collect(),
            others: node.children.as_ref().map(slot),
        };
        Types { symbols: all.iter().map(|node| (node.name.clone(), symbol(node))).collect() }
    }

    pub fn slot(&self, parent: &str, field: Option<&str>) -> Option<&Slot> {
        let symbol = self.symbols.get(parent)?;
        match field {
            Some(field) => symbol.fields.get(field),
            None => symbol.others.as_ref(),
        }
    }
}

/// The named symbols themselves, in place of those that stand for several.
fn concrete(types: &[TypeName], of_super: &FxHashMap<&str, &[TypeName]>) -> Vec<String> {
    let mut found = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut rest: Vec<&TypeName> = types.iter().filter(|name| name.named).collect();
    while let Some(name) = rest.pop() {
        if !seen.insert(&name.name) {
            continue;
        }
        match of_super.get(name.name.as_str()) {
            Some(subtypes) if !subtypes.is_empty() => {
                rest.extend(subtypes.iter().filter(|name| name.named));
            }
            _ => {
                found.insert(name.name.clone());
            }
        }
    }
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort();
    found
}
