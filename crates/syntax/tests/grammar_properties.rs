//! Random grammars, against what brute force finds of their languages.

mod support;

use std::collections::BTreeSet;
use support::{Random, check, dump, vary};
use why_syntax::grammar::{Grammar, Recursion};

/// Up to which length brute force knows all texts.
const LENGTH: usize = 4;
const NAMES: [&str; 5] = ["s", "t", "u", "v", "w"];

#[derive(Clone, Copy)]
enum Symbol {
    Token(usize),
    Name(usize),
}

struct RandomGrammar {
    tokens: &'static [&'static str],
    /// The alternatives of each name.
    rules: Vec<Vec<Vec<Symbol>>>,
}

impl RandomGrammar {
    fn new(random: &mut Random, tokens: &'static [&'static str]) -> RandomGrammar {
        let names = 1 + random.below(NAMES.len());
        let symbol = |random: &mut Random| match random.below(2) {
            0 => Symbol::Token(random.below(tokens.len())),
            _ => Symbol::Name(random.below(names)),
        };
        let alternative = |random: &mut Random| {
            let length = *random.pick(&[0, 1, 1, 2, 2, 3, 3, 4]);
            (0..length).map(|_| symbol(random)).collect()
        };
        let rule = |random: &mut Random| {
            let alternatives = 1 + random.below(4);
            (0..alternatives).map(|_| alternative(random)).collect()
        };
        RandomGrammar { tokens, rules: (0..names).map(|_| rule(random)).collect() }
    }

    fn source(&self, definitions: &str) -> String {
        let mut source = format!("{definitions}\n%%\n");
        for (name, alternatives) in NAMES.iter().zip(&self.rules) {
            let symbol = |symbol: &Symbol| match symbol {
                Symbol::Token(token) => self.tokens[*token].to_owned(),
                Symbol::Name(name) => NAMES[*name].to_owned(),
            };
            let alternative = |a: &Vec<Symbol>| a.iter().map(symbol).collect::<Vec<_>>().join(" ");
            let alternatives: Vec<String> = alternatives.iter().map(alternative).collect();
            source += &format!("{name}: {};\n", alternatives.join(" | "));
        }
        source
    }

    /// All texts of each name that are not too long, for tokens of one letter.
    fn texts(&self) -> Vec<BTreeSet<String>> {
        let mut texts: Vec<BTreeSet<String>> = vec![BTreeSet::new(); self.rules.len()];
        loop {
            let before: usize = texts.iter().map(BTreeSet::len).sum();
            for (name, alternatives) in self.rules.iter().enumerate() {
                for alternative in alternatives {
                    let mut made = BTreeSet::from([String::new()]);
                    for symbol in alternative {
                        let token;
                        let parts = match symbol {
                            Symbol::Token(index) => {
                                token = BTreeSet::from([self.tokens[*index][1..2].to_owned()]);
                                &token
                            }
                            Symbol::Name(name) => &texts[*name],
                        };
                        let longer = |text: &String| {
                            let text = text.clone();
                            parts.iter().map(move |part| text.clone() + part)
                        };
                        made = made.iter().flat_map(longer).filter(|t| t.len() <= LENGTH).collect();
                    }
                    texts[name].extend(made);
                }
            }
            if texts.iter().map(BTreeSet::len).sum::<usize>() == before {
                return texts;
            }
        }
    }

    /// The tokens of a random text of the first name, if one is found soon.
    fn random_text(&self, random: &mut Random) -> Option<Vec<usize>> {
        let mut tokens = Vec::new();
        let mut rest = vec![Symbol::Name(0)];
        for _ in 0..400 {
            match rest.pop() {
                None => return Some(tokens),
                Some(Symbol::Token(token)) => tokens.push(token),
                Some(Symbol::Name(name)) => {
                    // The more there is to do, the shorter.
                    let alternatives = &self.rules[name];
                    let one = random.pick(alternatives);
                    let other = random.pick(alternatives);
                    let short = if one.len() < other.len() { one } else { other };
                    let chosen = if rest.len() > 8 { short } else { one };
                    rest.extend(chosen.iter().rev());
                }
            }
        }
        None
    }
}

fn every_text(letters: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..LENGTH {
        let until = all.len();
        for index in from..until {
            for letter in letters.chars() {
                all.push(format!("{}{letter}", all[index]));
            }
        }
        from = until;
    }
    all
}

#[test]
fn smallest_texts_and_languages_are_those_of_brute_force() {
    let mut random = Random(1);
    let (mut smallest, mut members) = (0, 0);
    for _ in 0..3000 {
        let random_grammar = RandomGrammar::new(&mut random, &["'a'", "'b'", "'c'"]);
        let source = random_grammar.source("");
        let texts = random_grammar.texts();
        let grammar = match Grammar::read(source.as_bytes()) {
            Ok(grammar) => grammar,
            Err(error) => {
                assert!(error.message.contains("can never end"), "{error}\n{source}");
                assert!(texts[0].is_empty(), "{error}\n{source}");
                continue;
            }
        };
        let unproductive: Vec<&str> = grammar.unproductive().map(|(name, _)| name).collect();
        for (name, texts) in NAMES.iter().zip(&texts) {
            let shortest = texts.iter().map(String::len).min();
            match (grammar.minimal(name), shortest) {
                (Some(minimal), Some(shortest)) => {
                    assert_eq!(minimal.len(), shortest, "{name}\n{source}");
                    assert!(texts.contains(std::str::from_utf8(minimal).unwrap()));
                    smallest += 1;
                }
                (Some(minimal), None) => assert!(minimal.len() > LENGTH, "{name}\n{source}"),
                (None, shortest) => {
                    assert!(shortest.is_none() && unproductive.contains(name), "{name}\n{source}");
                }
            }
        }
        for text in every_text("abc") {
            for recursion in [Recursion::Flat, Recursion::Nested] {
                let tree = grammar.tree(text.as_bytes(), recursion);
                assert_eq!(tree.is_ok(), texts[0].contains(&text), "{text:?}\n{source}");
                if let Ok(tree) = tree {
                    check(&tree, text.as_bytes());
                    members += 1;
                }
            }
        }
    }
    assert!(smallest > 3000 && members > 10_000, "{smallest} {members}");
}

/// Replaces random parts of random texts, and parses what comes of it.
fn replace(seed: u64, tokens: &'static [&'static str], definitions: &str, shown: fn(&str) -> &str) {
    let mut random = Random(seed);
    let mut tried = 0;
    while tried < 20_000 {
        let random_grammar = RandomGrammar::new(&mut random, tokens);
        let source = random_grammar.source(definitions);
        let Ok(grammar) = Grammar::read(source.as_bytes()) else { continue };
        for _ in 0..10 {
            let Some(tokens_of_text) = random_grammar.random_text(&mut random) else { continue };
            let mut text = String::new();
            for token in tokens_of_text {
                text += shown(tokens[token]);
                text += *random.pick(&[" ", "\n", "  ", " \t"]);
            }
            for recursion in [Recursion::Flat, Recursion::Nested] {
                let tree = grammar.tree(text.as_bytes(), recursion).unwrap();
                check(&tree, text.as_bytes());
                for _ in 0..5 {
                    let varied = vary(&tree, text.as_bytes(), &mut random);
                    tried += 1;
                    if let Err(error) = grammar.tree(&varied, recursion) {
                        let varied = String::from_utf8_lossy(&varied);
                        let dump = dump(&tree, text.as_bytes());
                        panic!("{varied:?}: {error}\n{source}\n{text:?}\n{dump}");
                    }
                }
            }
        }
    }
}

#[test]
fn whatever_is_replaced_the_text_is_one_of_the_language() {
    replace(2, &["'a'", "'b'", "'c'"], "%skip /[ \\n\\t]+/", |token| &token[1..2]);
}

#[test]
fn tokens_that_become_neighbours_stay_two() {
    let definitions = "
        %token WORD /[a-z]+/ NUMBER /[0-9]+(\\.[0-9]+)?/ \"1.5\" STRING /\"[^\"]*\"/
        %skip /[ \\n\\t]+/ /#[a-z]*/";
    let shown = |token: &str| match token {
        "WORD" => "word",
        "NUMBER" => "12.25",
        "STRING" => "\"some text\"",
        "'if'" => "if",
        "'+'" => "+",
        "'++'" => "++",
        _ => ".",
    };
    replace(3, &["WORD", "NUMBER", "STRING", "'if'", "'+'", "'++'", "'.'"], definitions, shown);
}
