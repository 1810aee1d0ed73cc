//! Panics in the library, because of what the program has computed.
fn index_of(numbers: &[u32], wanted: u32) -> usize {
    let mut index = 0;
    while index < numbers.len() {
        if numbers[index] == wanted {
            return index;
        }
        index += 1;
    }
    index /* past the end */
}

fn main() {
    let numbers = vec![3, 5, 8];
    let found = index_of(&numbers, 7); /* found */
    println!("{}", numbers[found]); /* panics */
}
