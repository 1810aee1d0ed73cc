//! What goes wrong around a recording: somebody is killed, the disk is full, files change.
//! There is always either no recording or one that is replayed as far as it goes, and one
//! clear line about it.

#[path = "../support/mod.rs"]
mod support;

mod damage;
mod full_disk;
mod kills;
mod scribbles;
mod strangers;
