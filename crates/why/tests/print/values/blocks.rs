#[derive(Clone, Copy, Debug)]
enum Step {
    Add(i64),
    Times { by: i32 },
    Negate,
}

struct Account<'a> {
    total: i64,
    name: &'a str,
    log: Vec<Step>,
}

impl<'a> Account<'a> {
    fn apply(&mut self, step: Step) -> Option<i64> {
        let before = self.total;
        match step {
            Step::Add(n) => self.total += n,
            Step::Times { by } => { let by = by as i64;
                self.total *= by; } // TIMES
            Step::Negate => self.total = -self.total,
        }
        self.log.push(step);
        if self.total > 100 { return None; }
        Some(self.total - before)
    }
}

#[inline(never)]
fn run(steps: &[Step], first: i64) -> Result<i64, String> {
    let mut account = Account { total: first, name: "account", log: Vec::new() };
    for (number, &step) in steps.iter().enumerate() {
        let change = account.apply(step); // APPLY
        println!("{number} {change:?}");
        if change.is_none() { return Err(format!("{} over at {number}", account.name)); }
    }
    Ok(account.total)
}

fn main() {
    let steps = vec![Step::Add(3), Step::Times { by: -4 }, Step::Negate, Step::Add(1000)];
    let last = run(&steps, 1);
    println!("{last:?}");
}
