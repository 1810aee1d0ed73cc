use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Shape {
    Empty,
    Circle(f64),
    Rectangle { width: i32, height: i32 },
}

struct Holder<'a> {
    name: &'a str,
    owned: String,
    pair: (u8, i64),
    maybe: Option<u32>,
    nothing: Option<&'a u32>,
}

static LIMIT: u32 = 77;

#[inline(never)]
fn area(shape: &Shape, scale: f64) -> f64 {
    let letter = 'x';
    let flag = true;
    let empty = Shape::Empty;
    let circle = Shape::Circle(2.5);
    let rectangle = Shape::Rectangle { width: 3, height: -4 };
    let numbers = [10i16, 20, 30];
    let small: i8 = -7;
    let result = match shape {
        Shape::Empty => 0.0,
        Shape::Circle(radius) => radius * scale,
        Shape::Rectangle { width, height } => f64::from(width * height) * scale,
    };
    keep(&letter, &flag, &empty, &circle, &rectangle, &numbers, &small); // LOOK
    result
}

#[inline(never)]
fn keep<A, B, C, D, E, F, G>(_: &A, _: &B, _: &C, _: &D, _: &E, _: &F, _: &G) {}

#[inline(never)]
fn hold(holder: &Holder, times: usize) -> usize {
    let sum = holder.name.len() + holder.owned.len() * times;
    if sum > 100_000 { panic!("too much") }
    sum + usize::from(holder.pair.0) // HOLD
}

fn main() {
    let holder = Holder {
        name: "static name",
        owned: String::from("owned text"),
        pair: (200, -5),
        maybe: Some(9),
        nothing: None,
    };
    let mut map = HashMap::new();
    map.insert("one", 1);
    let total = area(&Shape::Rectangle { width: 2, height: 5 }, 1.5) + area(&Shape::Circle(1.0), 2.0);
    let held = hold(&holder, 3);
    println!("{total} {held} {} {:?} {:?}", LIMIT, holder.maybe, holder.nothing);
    let none: Option<i32> = map.get("two").copied();
    none.expect("there is no two");
}
