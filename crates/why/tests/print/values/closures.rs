// A line with a closure that it calls itself.
fn main() {
    let least = std::env::args().count() as i32 + 2;
    let all = [1, 5, 7, 2];
    let mut found = 0;
    found += all.iter().filter(|one| **one > least).count(); // FOUND
    std::process::exit(found as i32);
}
