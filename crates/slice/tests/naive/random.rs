//! Small C programs from a seed: expressions, branches, loops, arrays, pointers, calls.

use super::compare::Random;

/// The types of variables, the narrow ones too.
const TYPES: [&str; 8] =
    ["int", "unsigned", "long", "unsigned long", "short", "unsigned char", "signed char", "double"];
const LOCALS: u64 = 5;
const GLOBALS: u64 = 4;
const ARRAY: u64 = 8;
const FUNCTIONS: u64 = 4;

pub fn program(seed: u64) -> String {
    // Neighbouring seeds shall not make similar programs.
    let mut random = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        random.below(2);
    }
    Writer { random, text: String::new(), function: 0, loops: 0 }.program()
}

struct Writer {
    random: Random,
    text: String,
    /// Functions call those before them only.
    function: u64,
    loops: u64,
}

impl Writer {
    fn program(mut self) -> String {
        self.text.push_str("int result;\nstatic volatile int input = 37;\n");
        for global in 0..GLOBALS {
            let kind = self.kind();
            self.line(&format!("static {kind} g{global} = {};", 3 + global));
        }
        self.line(&format!("static int a[{ARRAY}];\nstatic unsigned char b[{ARRAY}];"));
        self.text.push_str("struct pair { long one; short two; } pairs[4];\n");
        self.text
            .push_str("static double c[8];\nstatic struct pair (*chosen[2])(struct pair, int);\n");
        self.text.push_str("static struct pair swap(struct pair it, int n) { long one = it.one; it.one = it.two + n; it.two = one; return it; }\n");
        self.text.push_str("static struct pair keep(struct pair it, int n) { if (n > 9) it.two ^= n; return it; }\n");
        self.text.push_str("static struct pair (*chosen[2])(struct pair, int) = {swap, keep};\n");
        for function in 0..FUNCTIONS {
            self.function = function;
            self.function(function);
        }
        self.function = FUNCTIONS;
        self.text.push_str("int main(void) {\n");
        self.body("input", "input + 3");
        self.text.push_str(
            "for (int i = 0; i < 8; i++) result = result * 3 + a[i] + b[i] + (int)c[i];\n\
             for (int i = 0; i < 4; i++) result += pairs[i].one ^ pairs[i].two;\nreturn 0;\n}\n",
        );
        self.text
    }

    fn kind(&mut self) -> &'static str {
        TYPES[self.random.below(TYPES.len() as u64) as usize]
    }

    fn function(&mut self, number: u64) {
        let (result, one, two) = (self.kind(), self.kind(), self.kind());
        self.line(&format!(
            "__attribute__((noinline)) static {result} f{number}({one} x, {two} y, int *p) {{"
        ));
        self.body("x", "y");
        let value = self.expression(2);
        self.line(&format!("return {value};\n}}"));
    }

    /// Variables that are made from two values, and some statements.
    fn body(&mut self, one: &str, two: &str) {
        for local in 0..LOCALS {
            let kind = self.kind();
            let from = if local % 2 == 0 { one } else { two };
            self.line(&format!("{kind} v{local} = {from};"));
        }
        if self.function == FUNCTIONS {
            self.text.push_str("int *p = a + input % 8;\n");
        }
        let statements = 3 + self.random.below(4);
        (0..statements).for_each(|_| self.statement(2));
    }

    fn statement(&mut self, depth: u64) {
        let value = self.expression(2);
        match self.random.below(if depth == 0 { 9 } else { 15 }) {
            0 | 1 => {
                let (to, by) = (self.variable(), ["=", "+=", "-=", "="][self.below(4)]);
                self.line(&format!("{to} {by} {value};"));
            }
            2 => {
                let at = self.index();
                let array = ["a", "b"][self.below(2)];
                self.line(&format!("{array}[{at}] = {value};"));
            }
            3 => self.line(&format!("*p += {value};")),
            4 => {
                let (at, other) = (self.index(), self.index());
                let field = ["one", "two"][self.below(2)];
                self.line(&format!("pairs[{at} % 4].{field} = {value};"));
                self.line(&format!("pairs[{other} % 4] = pairs[{at} % 4];"));
            }
            5 => {
                let at = self.index();
                self.line(&format!("p = a + {at};"));
            }
            6 => {
                let (at, other) = (self.index(), self.index());
                self.line(&format!(
                    "pairs[{at} % 4] = chosen[{other} % 2](pairs[{other} % 4], {value});"
                ));
            }
            7 => {
                let (at, count) = (self.index(), self.index());
                let (to, from) =
                    [("a", "b"), ("b", "a"), ("c", "a"), ("b", "pairs")][self.below(4)];
                self.line(&format!("__builtin_memcpy({to}, {from}, {count});"));
                self.line(&format!("__builtin_memset((char *){to} + {at}, {value}, {count} % 4);"));
            }
            8 => {
                let at = self.index();
                self.line(&format!("c[{at}] = {value};"));
                self.line(&format!(
                    "for (int k = 1; k < {ARRAY}; k++) c[k] = c[k] * 0.5 + c[k - 1] + b[k];"
                ));
            }
            9 | 10 => {
                let than = self.below(50);
                self.line(&format!("if ({value} > {than}) {{"));
                self.statement(depth - 1);
                self.text.push_str("} else {\n");
                self.statement(depth - 1);
                self.text.push_str("}\n");
            }
            11 | 12 => {
                let (counter, times) = (self.loops, 1 + self.below(4));
                self.loops += 1;
                self.line(&format!(
                    "for (int i{counter} = 0; i{counter} < {times}; i{counter}++) {{"
                ));
                self.statement(depth - 1);
                let condition = self.expression(1);
                let leave = ["break", "continue"][self.below(2)];
                let number = self.below(9);
                self.line(&format!("if ({condition} == {number}) {leave};"));
                self.statement(depth - 1);
                self.text.push_str("}\n");
            }
            13 => {
                self.line(&format!("switch ((int)({value}) & 7) {{"));
                for case in 0..6 {
                    self.line(&format!("case {case}:"));
                    self.statement(0);
                    let end = ["break;", "/* and on */"][self.below(2)];
                    self.line(end);
                }
                self.text.push_str("default:;\n}\n");
            }
            _ => {
                let to = self.variable();
                let call = self.call(1);
                self.line(&format!("{to} = {call};"));
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn below(&mut self, limit: u64) -> usize {
        self.random.below(limit) as usize
    }

    fn variable(&mut self) -> String {
        match self.random.below(3) {
            0 => format!("g{}", self.random.below(GLOBALS)),
            _ => format!("v{}", self.random.below(LOCALS)),
        }
    }

    /// A number below that of an array's elements.
    fn index(&mut self) -> String {
        let value = self.expression(1);
        format!("((unsigned)(int)({value}) % {ARRAY})")
    }

    fn call(&mut self, depth: u64) -> String {
        if self.function == 0 {
            return self.expression(depth);
        }
        let function = self.random.below(self.function);
        let (one, two) = (self.expression(depth), self.expression(depth));
        let at = self.index();
        format!("f{function}({one}, {two}, a + {at})")
    }

    fn expression(&mut self, depth: u64) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 => format!("{}", self.random.below(100)),
                1 => format!("a[{}]", self.random.below(ARRAY)),
                _ => self.variable(),
            };
        }
        let one = self.expression(depth - 1);
        let other = self.expression(depth - 1);
        match self.random.below(12) {
            0 | 1 => format!("({one} + {other})"),
            2 => format!("({one} - {other})"),
            3 => format!("({one} * {other})"),
            4 => format!("((long)({one}) / ((int)({other}) | 1))"),
            5 => format!("((long)({one}) & (long)({other}))"),
            6 => format!("((unsigned)(int)({one}) ^ (unsigned char)(int)({other}))"),
            7 => format!("((long)({one}) << ((int)({other}) & 7))"),
            8 => format!("((unsigned)(int)({one}) >> ((int)({other}) & 15))"),
            9 => format!("({one} < {other} ? {one} : 5)"),
            10 => format!("({one} > 3 && {other} != 8)"),
            _ => format!("b[((unsigned)(int)({one})) % {ARRAY}]"),
        }
    }
}
