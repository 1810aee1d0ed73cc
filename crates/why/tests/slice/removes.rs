//! Panics in a function that does nothing else.

fn main() {
    let n = std::env::args().count() + 2; /* counted */
    let mut numbers: Vec<u32> = (0..9).collect(); /* nine */
    numbers.retain(|number| *number < n as u32); /* retained */
    println!("{}", numbers.remove(n + 2)); /* removes */
}
