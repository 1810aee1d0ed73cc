#[inline(always)]
fn scale(value: i64, unused: i64) -> i64 {
    let dead = value ^ unused;
    println!("{value}"); // LOOK
    let _ = dead;
    value * 2
}

fn main() {
    let count = std::env::args().count() as i64;
    std::process::exit(i32::from(scale(count, 3) == 0));
}
