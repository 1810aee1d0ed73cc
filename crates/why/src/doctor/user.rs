//! Who runs `why`, and with which capabilities.

use std::fs;

use super::finding::Finding;

pub fn probe() -> Finding {
    let uid = nix::unistd::geteuid();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .map_or_else(|| "unknown".to_owned(), |bits| bits.count_ones().to_string());
    let (who, means) = if uid.is_root() {
        ("root", "why does not need root: an ordinary user can do the same.")
    } else {
        ("an ordinary user", "Enough: why needs neither root nor capabilities.")
    };
    Finding::works(
        "user",
        format!("{who} (uid {uid}), {capabilities} effective capabilities"),
        means,
    )
}
