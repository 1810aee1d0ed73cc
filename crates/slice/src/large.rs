//! Large lists in large pages: most of the time that it takes to fill them for the first time the
//! kernel needs for pages, one after the other.

/// Room for a list that will be about as long as another.
pub fn room_like<T>(list: &[T]) -> Vec<T> {
    let room = Vec::with_capacity(list.len() + list.len() / 8);
    advise(&room);
    room
}

/// So many zeros.
pub fn zeros(count: usize) -> Vec<u64> {
    let zeros = vec![0; count];
    advise(&zeros);
    zeros
}

/// Asks for large pages where a list has its room.
fn advise<T>(list: &Vec<T>) {
    /// Smaller lists have none.
    const LARGE: usize = 2 << 20;
    const PAGE: usize = 4096;
    let size = list.capacity() * size_of::<T>();
    let start = (list.as_ptr() as usize).next_multiple_of(PAGE);
    let end = list.as_ptr() as usize + size;
    if size >= LARGE {
        // SAFETY: this says how memory of our own that stays what it is should be kept. If the
        // kernel has no such pages nothing happens.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}
