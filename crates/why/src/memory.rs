//! Memory, and what is said where there is no more. Nobody goes on then: all code here takes it that
//! there is some.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::OnceLock;
use why_engine::launch;
use why_record::remedy;

/// The system's memory, or the end of this process.
pub struct OrEnd;

/// How this command ends without memory.
struct Ending {
    status: i32,
    has_limit: bool,
}

static ENDING: OnceLock<Ending> = OnceLock::new();

/// What is to be said depends on the command.
pub fn prepare(command: Option<&str>, status: u8) {
    let has_limit = matches!(command, Some("slice" | "chop"));
    ENDING.get_or_init(|| Ending { status: status.into(), has_limit });
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match launch::is_for_want_of_memory(panic) {
        true => end(),
        false => others(panic),
    }));
}

fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

/// Must do without any memory.
#[cold]
fn end() -> ! {
    let ending = ENDING.get();
    // Whoever has started a supervisor says it.
    let status = match launch::supervises() {
        true => launch::NO_MEMORY,
        false => {
            let mut text = [0; 256];
            let mut free = &mut text[..];
            let _ = write!(free, "why: memory has run out; {}", remedy::LessMemory);
            if ending.is_some_and(|ending| ending.has_limit) {
                let _ = write!(free, ", or allow less with --memory");
            }
            let _ = writeln!(free);
            let unused = free.len();
            let text = &text[..text.len() - unused];
            // SAFETY: the bytes live here. The stream of the library might wait for a thread.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
            ending.map_or(1, |ending| ending.status)
        }
    };
    // SAFETY: runs nothing of this process any more.
    unsafe { libc::_exit(status) }
}

// SAFETY: it is the system's, and never returns null.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}
