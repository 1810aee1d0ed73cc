//! Panics because something is not there that the program expects.
fn get(number: usize) -> Option<usize> {
    if number > 3 {
        return None; /* none */
    }
    Some(number)
}

fn main() {
    let number = std::env::args().count() + 4; /* number */
    println!("{}", get(number).unwrap()); /* unwraps */
}
