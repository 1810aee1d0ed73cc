//! A timer that interrupts `waitpid`.

use nix::sys::signal::{SigSet, Signal};
use std::time::Duration;

/// Arms the timer with this period, or disarms it.
pub fn every(period: Option<Duration>) {
    let micros = period.map_or(0, |p| p.as_micros() as i64);
    let interval = libc::timeval { tv_sec: 0, tv_usec: micros };
    let value = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: `value` outlives the call; no old value is asked for.
    let result = unsafe { libc::setitimer(libc::ITIMER_REAL, &value, std::ptr::null_mut()) };
    assert_eq!(result, 0, "setitimer takes any period below a second");
}

/// Makes the timer's signal do nothing but interrupt this thread.
pub fn prepare() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction is valid; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
    }
    let mut alarm = SigSet::empty();
    alarm.add(Signal::SIGALRM);
    alarm.thread_unblock().expect("any signal can be unblocked");
}
