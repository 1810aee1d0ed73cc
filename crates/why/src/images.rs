//! The code of a recording, with its symbols, as they are needed.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use why_engine::{Module, Scene};
use why_record::files::{Files, Hash};
use why_record::registers::{COUNT, FS_BASE};
use why_symbols::{Frame, Image, Memory, Modules};

pub struct Images {
    files: Files,
    loaded: HashMap<Hash, Option<Rc<Image>>>,
}

impl Images {
    pub fn new(files: Files) -> Images {
        Images { files, loaded: HashMap::new() }
    }

    /// None if it is no code.
    fn image(&mut self, module: &Module) -> Option<Rc<Image>> {
        let path = self.files.path(module.hash);
        let load = || {
            let bytes = std::fs::read(path).ok()?;
            Image::load(&bytes, Path::new(&module.name)).map(Rc::new)
        };
        self.loaded.entry(module.hash).or_insert_with(load).clone()
    }

    pub fn module(&mut self, module: &Module) -> Option<why_symbols::Module> {
        let image = self.image(module)?;
        let (range, name) = (module.range.clone(), module.name.clone());
        why_symbols::Module::new(range, module.offset, module.executable, name, image)
    }

    pub fn modules(&mut self, scene: &Scene) -> Modules {
        Modules(scene.modules.iter().filter_map(|module| self.module(module)).collect())
    }
}

/// The memory of a replayed process.
pub struct SceneMemory<'a>(pub &'a Scene<'a>);

impl Memory for SceneMemory<'_> {
    fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        self.0.read(at, buffer)
    }

    fn thread_pointer(&self) -> Option<u64> {
        Some(self.0.registers.0[FS_BASE])
    }
}

/// The innermost frame of the thread that is to go on.
pub fn innermost(scene: &Scene) -> Frame {
    /// Where DWARF's first registers are among ours: it has another order up to rsp.
    const ORDER: [usize; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    let all: [u64; COUNT] = scene.registers.0;
    let registers = std::array::from_fn(|number| all[*ORDER.get(number).unwrap_or(&number)]);
    let vectors = scene.vectors().and_then(|saved| {
        /// In what XSAVE saves.
        const XMM: usize = 160;
        let (vectors, _) = saved.get(XMM..XMM + 256)?.as_chunks();
        vectors.try_into().ok()
    });
    Frame::innermost(registers, vectors)
}
