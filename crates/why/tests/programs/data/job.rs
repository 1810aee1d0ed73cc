use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

fn main() {
    // The message of a panic names the thread by number.
    panic::set_hook(Box::new(|_| eprintln!("a panic")));

    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let workers: Vec<_> = (0..4u64)
        .map(|worker| {
            let counts = counts.clone();
            thread::spawn(move || {
                for i in 0..500 {
                    *counts.lock().unwrap().entry((worker * i) % 7).or_insert(0) += 1;
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    println!("{:?}", counts.lock().unwrap());

    let (send, receive) = mpsc::sync_channel(2);
    let producer = thread::spawn(move || (0..100).for_each(|i| send.send(i * i).unwrap()));
    println!("{}", receive.iter().sum::<i32>());
    producer.join().unwrap();

    let caught = panic::catch_unwind(|| "no number".parse::<i32>().unwrap());
    println!("caught a panic: {}", caught.is_err());
    let joined = thread::spawn(|| panic!("in a thread")).join();
    println!("the thread panicked: {}", joined.is_err());

    let words: HashMap<String, usize> = (0..1000).map(|i| (format!("word {}", i % 37), i)).collect();
    println!("{} {}", words.len(), words.values().sum::<usize>());
    let text: String = (0..2000u32).filter_map(char::from_u32).rev().collect();
    println!("{} {}", text.len(), text.to_uppercase().chars().count());
    let floats: f64 = (1..10_000).map(|i| f64::from(i).sqrt().sin()).sum();
    println!("{floats:.9}");
    let output = std::process::Command::new("echo").arg("from a child").output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    std::fs::write("written", format!("{words_len}\n", words_len = words.len())).unwrap();
}
