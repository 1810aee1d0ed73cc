//! What each byte and flag was made by last, and what that was made from: a graph that grows
//! as the run goes on.

use iced_x86::Register;
use rustc_hash::FxHashMap;

/// The number of a step.
pub type Instance = u32;

/// Something that a step made.
pub type Node = u32;

/// Where a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    General(u8, u8),
    Vector(u8, u8),
    Mask(u8, u8),
    /// By the letter that manuals call it: c, p, a, z, s, o, d.
    Flag(char),
    X87,
    Mxcsr,
    Memory(u64),
}

pub const FRAME_POINTER: u8 = 5;
const STACK_POINTER: u8 = 4;

impl At {
    /// The bytes of a register; none for those of which nothing is known.
    pub fn of(register: Register) -> Vec<At> {
        let number = register.number() as u8;
        let size = register.size() as u8;
        let full = register.full_register().number() as u8;
        match register {
            Register::AH | Register::BH | Register::CH | Register::DH => vec![At::General(full, 1)],
            _ if register.is_gpr() => (0..size).map(|byte| At::General(full, byte)).collect(),
            _ if register.is_vector_register() => {
                (0..size).map(|byte| At::Vector(number, byte)).collect()
            }
            _ if register.is_k() => (0..size).map(|byte| At::Mask(number, byte)).collect(),
            _ if register.is_st() || register.is_mm() => vec![At::X87],
            _ => Vec::new(),
        }
    }

    /// Whether it is of a register that functions have to bring back.
    pub fn is_kept(self) -> bool {
        matches!(self, At::General(3 | FRAME_POINTER | 12..=15, _))
    }

    pub fn is_stack_pointer(self) -> bool {
        matches!(self, At::General(STACK_POINTER, _))
    }
}

/// What a byte is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub values: Vec<Node>,
    /// What selected the places in memory that these were in.
    pub addresses: Vec<Node>,
    /// The stack pointer is among them.
    pub stack: bool,
    /// Something else is.
    pub other: bool,
}

impl Sources {
    pub fn add(&mut self, more: &Sources) {
        self.values.extend(&more.values);
        self.addresses.extend(&more.addresses);
        self.stack |= more.stack;
        self.other |= more.other;
    }

    pub fn all<'a>(of: impl IntoIterator<Item = &'a Sources>) -> Sources {
        let mut all = Sources::default();
        of.into_iter().for_each(|sources| all.add(sources));
        all
    }
}

/// What has been made, by whom and from what.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Made>,
}

struct Made {
    by: Instance,
    /// It only tells where a frame lies: nobody depends on it.
    frame: bool,
    values: Box<[Node]>,
    addresses: Box<[Node]>,
}

impl Graph {
    pub fn add(&mut self, by: Instance, mut sources: Sources) -> Node {
        for list in [&mut sources.values, &mut sources.addresses] {
            list.sort_unstable();
            list.dedup();
        }
        let (values, addresses) = (sources.values.into(), sources.addresses.into());
        self.nodes.push(Made { by, frame: false, values, addresses });
        self.nodes.len() as Node - 1
    }

    /// Something that only tells where a frame lies.
    pub fn add_frame(&mut self, by: Instance) -> Node {
        let (values, addresses) = (Box::default(), Box::default());
        self.nodes.push(Made { by, frame: true, values, addresses });
        self.nodes.len() as Node - 1
    }

    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_frame(&self, node: Node) -> bool {
        self.nodes[node as usize].frame
    }

    pub fn by(&self, node: Node) -> Instance {
        self.nodes[node as usize].by
    }

    pub fn values(&self, node: Node) -> &[Node] {
        &self.nodes[node as usize].values
    }

    pub fn addresses(&self, node: Node) -> &[Node] {
        &self.nodes[node as usize].addresses
    }
}

/// Who made what is in the registers of a thread.
pub type Registers = Vec<(At, Node)>;

/// Who made what is there now.
#[derive(Default)]
pub struct Shadow {
    memory: FxHashMap<u64, Node>,
    registers: FxHashMap<(u64, At), Node>,
}

impl Shadow {
    pub fn get(&self, thread: u64, at: At) -> Option<Node> {
        match at {
            At::Memory(address) => self.memory.get(&address).copied(),
            _ => self.registers.get(&(thread, at)).copied(),
        }
    }

    /// A thread begins with the registers of another one, but for the stack pointer.
    pub fn inherit(&mut self, thread: u64, creator: u64) {
        let of_creator = self.registers.iter().filter(|((of, _), _)| *of == creator);
        let inherited: Vec<((u64, At), Node)> = of_creator
            .filter(|((_, at), _)| !at.is_stack_pointer())
            .map(|((_, at), node)| ((thread, *at), *node))
            .collect();
        self.registers.extend(inherited);
    }

    /// All that is in the registers of a thread; nobody made that then.
    pub fn take(&mut self, thread: u64) -> Registers {
        let own = |((of, at), node): (&(u64, At), &Node)| (*of == thread).then_some((*at, *node));
        let taken = self.registers.iter().filter_map(own).collect();
        self.registers.retain(|(of, _), _| *of != thread);
        taken
    }

    pub fn set(&mut self, thread: u64, at: At, node: Option<Node>) {
        match (at, node) {
            (At::Memory(address), Some(node)) => drop(self.memory.insert(address, node)),
            (At::Memory(address), None) => drop(self.memory.remove(&address)),
            (_, Some(node)) => drop(self.registers.insert((thread, at), node)),
            (_, None) => drop(self.registers.remove(&(thread, at))),
        }
    }
}
