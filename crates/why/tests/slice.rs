//! What `why slice` and `why chop` say of programs whose slices are known: from the works that
//! they come from, and by hand.

#[path = "slice/chops.rs"]
mod chops;
#[path = "slice/cut.rs"]
mod cut;
#[path = "slice/dependences.rs"]
mod dependences;
#[path = "slice/ends.rs"]
mod ends;
#[path = "slice/inputs.rs"]
mod inputs;
#[path = "slice/messages.rs"]
mod messages;
#[path = "slice/processes.rs"]
mod processes;
#[path = "slice/recorded.rs"]
mod recorded;
#[path = "slice/shown.rs"]
mod shown;
#[path = "slice/threads.rs"]
mod threads;
#[path = "slice/traces.rs"]
mod traces;
