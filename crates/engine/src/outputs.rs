//! Where system calls write to the program's memory: one table for all of them.
//!
//! A call that is not listed cannot be recorded: what it wrote would be missing.

use crate::memory::{Address, Memory};
use std::ops::Range;

/// A place that a call may write to.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The argument that points there; a null pointer is none.
    argument: usize,
    size: Size,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Bytes(u64),
    /// As many bytes as the result says.
    Result,
    /// So many bytes for each that the result counts.
    PerResult(u64),
    /// As many bytes as an argument says.
    Argument(usize),
    /// So many bytes for each that an argument counts.
    PerArgument(usize, u64),
    /// As many bytes as the length says that this argument points to, at most as many as
    /// there was room for.
    Length(usize),
    /// A set of as many bits as the argument says, in words.
    Bits(usize),
    /// The buffers of so many `iovec`s, filled with as many bytes as the result says.
    Vectors(usize),
    /// What an `msghdr` points to.
    Message,
    /// So many messages as the result says, with their headers.
    Messages,
    /// What an `ioctl` says of itself in its number, or what is known of it.
    DeviceControl,
    /// A `msgbuf`: its type, and as much text as the result says.
    TypedResult,
    /// A byte for each page of so many bytes.
    PerPage(usize),
}

const fn to(argument: usize, size: u64) -> Output {
    Output { argument, size: Size::Bytes(size) }
}

const fn sized(argument: usize, size: Size) -> Output {
    Output { argument, size }
}

const STAT: u64 = 144;
const RUSAGE: u64 = 144;
const SIGINFO: u64 = 128;
const TIMESPEC: u64 = 16;

/// The places that a call writes to, by its name; none if that is not known.
fn of(name: &str) -> Option<&'static [Output]> {
    Some(match name {
        "read" | "pread64" | "getdents" | "getdents64" | "readlink" => {
            const { &[sized(1, Size::Result)] }
        }
        "readlinkat" => const { &[sized(2, Size::Result)] },
        "readv" | "preadv" | "preadv2" => const { &[sized(1, Size::Vectors(2))] },
        // Another process's memory is not this one's; its own may be.
        "process_vm_writev" => const { &[sized(3, Size::Vectors(4))] },
        "process_vm_readv" => const { &[sized(1, Size::Vectors(2))] },
        "getcwd" | "getrandom" | "mq_timedreceive" => match name {
            "mq_timedreceive" => const { &[sized(1, Size::Result), to(3, 4)] },
            _ => const { &[sized(0, Size::Result)] },
        },
        "stat" | "fstat" | "lstat" => const { &[to(1, STAT)] },
        "newfstatat" => const { &[to(2, STAT)] },
        "statx" => const { &[to(4, 256)] },
        "statfs" | "fstatfs" => const { &[to(1, 120)] },
        "ustat" => const { &[to(1, 32)] },
        "poll" => const { &[sized(0, Size::PerArgument(1, 8))] },
        "ppoll" => const { &[sized(0, Size::PerArgument(1, 8)), to(2, TIMESPEC)] },
        "select" | "pselect6" => {
            const {
                &[
                    sized(1, Size::Bits(0)),
                    sized(2, Size::Bits(0)),
                    sized(3, Size::Bits(0)),
                    to(4, TIMESPEC),
                ]
            }
        }
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => const { &[sized(1, Size::PerResult(12))] },
        "ioctl" => const { &[sized(2, Size::DeviceControl)] },
        "pipe" | "pipe2" => const { &[to(0, 8)] },
        "socketpair" => const { &[to(3, 8)] },
        "mincore" => const { &[sized(2, Size::PerPage(1))] },
        "getitimer" => const { &[to(1, 32)] },
        "setitimer" => const { &[to(2, 32)] },
        "nanosleep" => const { &[to(1, TIMESPEC)] },
        "clock_nanosleep" => const { &[to(3, TIMESPEC)] },
        "clock_gettime" | "clock_getres" | "sched_rr_get_interval" => const { &[to(1, TIMESPEC)] },
        "gettimeofday" => const { &[to(0, 16), to(1, 8)] },
        "time" => const { &[to(0, 8)] },
        "times" => const { &[to(0, 32)] },
        "adjtimex" => const { &[to(0, 208)] },
        "clock_adjtime" => const { &[to(1, 208)] },
        "timer_create" => const { &[to(2, 4)] },
        "timer_settime" | "timerfd_settime" => const { &[to(3, 32)] },
        "timer_gettime" | "timerfd_gettime" => const { &[to(1, 32)] },
        "getrlimit" => const { &[to(1, 16)] },
        "prlimit64" => const { &[to(3, 16)] },
        "getrusage" => const { &[to(1, RUSAGE)] },
        "sysinfo" => const { &[to(0, 112)] },
        "uname" => const { &[to(0, 390)] },
        "sendfile" => const { &[to(2, 8)] },
        "splice" | "copy_file_range" => const { &[to(1, 8), to(3, 8)] },
        "accept" | "accept4" | "getsockname" | "getpeername" => {
            const { &[sized(1, Size::Length(2)), to(2, 4)] }
        }
        "recvfrom" => const { &[sized(1, Size::Result), sized(4, Size::Length(5)), to(5, 4)] },
        "getsockopt" => const { &[sized(3, Size::Length(4)), to(4, 4)] },
        "recvmsg" => const { &[sized(1, Size::Message)] },
        "recvmmsg" => const { &[sized(1, Size::Messages), to(4, TIMESPEC)] },
        "sendmmsg" => const { &[sized(1, Size::PerResult(64))] },
        "wait4" => const { &[to(1, 4), to(3, RUSAGE)] },
        "waitid" => const { &[to(2, SIGINFO), to(4, RUSAGE)] },
        "semctl" | "shmctl" | "msgctl" => const { &[to(3, 128), to(2, 128)] },
        "msgrcv" => const { &[sized(1, Size::TypedResult)] },
        "fcntl" => const { &[to(2, 32)] },
        "rt_sigaction" => const { &[to(2, 32)] },
        "rt_sigprocmask" => const { &[to(2, 8)] },
        "rt_sigpending" => const { &[to(0, 8)] },
        "rt_sigtimedwait" => const { &[to(1, SIGINFO)] },
        "sigaltstack" => const { &[to(1, 24)] },
        "getgroups" => const { &[sized(1, Size::PerResult(4))] },
        "getresuid" | "getresgid" => const { &[to(0, 4), to(1, 4), to(2, 4)] },
        "capget" => const { &[to(0, 8), to(1, 24)] },
        "sched_getparam" => const { &[to(1, 4)] },
        "sched_getattr" => const { &[sized(1, Size::Argument(2))] },
        "sched_getaffinity" => const { &[sized(2, Size::Argument(1))] },
        "prctl" => const { &[to(1, 16)] },
        "arch_prctl" => const { &[to(1, 8)] },
        "getxattr" | "lgetxattr" | "fgetxattr" => const { &[sized(2, Size::Result)] },
        "listxattr" | "llistxattr" | "flistxattr" => const { &[sized(1, Size::Result)] },
        // Locks that the kernel helps with are words it writes.
        "futex" => const { &[to(0, 4), to(4, 4)] },
        "clone" => const { &[to(2, 4), to(3, 4)] },
        "get_robust_list" => const { &[to(1, 8), to(2, 8)] },
        "io_setup" => const { &[to(1, 8)] },
        "io_getevents" => const { &[sized(3, Size::PerResult(32))] },
        "get_mempolicy" => const { &[to(0, 4), sized(1, Size::Bits(2))] },
        "mq_getsetattr" => const { &[to(2, 64)] },
        "name_to_handle_at" => const { &[to(2, 136), to(3, 4)] },
        "getcpu" => const { &[to(0, 4), to(1, 4)] },
        "inotify_init" | "inotify_init1" | "inotify_add_watch" | "inotify_rm_watch" => &[],
        "cachestat" => const { &[to(2, 40)] },
        "modify_ldt" => const { &[sized(1, Size::Result)] },
        "syslog" => const { &[sized(1, Size::Result)] },
        "keyctl" | "add_key" | "request_key" => &[],
        _ if WRITES_NOTHING.contains(&name) => &[],
        _ => return None,
    })
}

/// Calls that write nowhere, or whose effects on memory are told otherwise: new mappings,
/// new threads, registers from a frame.
#[rustfmt::skip]
const WRITES_NOTHING: &[&str] = &[
    "write", "open", "close", "lseek", "mmap", "mprotect", "munmap", "brk", "rt_sigreturn",
    "pwrite64", "writev", "access", "sched_yield", "mremap", "msync", "madvise", "shmget", "shmat",
    "dup", "dup2", "pause", "alarm", "getpid", "socket", "connect", "sendto", "sendmsg",
    "shutdown", "bind", "listen", "setsockopt", "fork", "vfork", "execve", "exit", "kill",
    "semget", "semop", "shmdt", "msgget", "msgsnd", "flock", "fsync", "fdatasync", "truncate",
    "ftruncate", "chdir", "fchdir", "rename", "mkdir", "rmdir", "creat", "link", "unlink",
    "symlink", "chmod", "fchmod", "chown", "fchown", "lchown", "umask", "getuid", "getgid",
    "setuid", "setgid", "geteuid", "getegid", "setpgid", "getppid", "getpgrp", "setsid",
    "setreuid", "setregid", "setgroups", "setresuid", "setresgid", "getpgid", "setfsuid",
    "setfsgid", "getsid", "capset", "rt_sigqueueinfo", "rt_sigsuspend", "utime", "mknod",
    "personality", "getpriority", "setpriority", "sched_setparam", "sched_setscheduler",
    "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "mlock", "munlock",
    "mlockall", "munlockall", "setrlimit", "chroot", "sync", "gettid", "readahead", "setxattr",
    "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "tkill",
    "sched_setaffinity", "io_destroy", "epoll_create", "set_tid_address", "restart_syscall",
    "semtimedop", "fadvise64", "timer_getoverrun", "timer_delete", "exit_group", "epoll_ctl",
    "tgkill", "utimes", "mbind", "set_mempolicy", "mq_open", "mq_unlink", "mq_timedsend",
    "mq_notify", "ioprio_set", "ioprio_get", "openat", "mkdirat", "mknodat", "fchownat",
    "futimesat", "unlinkat", "renameat", "linkat", "symlinkat", "fchmodat", "faccessat", "unshare",
    "set_robust_list", "tee", "sync_file_range", "vmsplice", "utimensat", "signalfd",
    "timerfd_create", "eventfd", "fallocate", "signalfd4", "eventfd2", "epoll_create1", "dup3",
    "pwritev", "rt_tgsigqueueinfo", "perf_event_open", "open_by_handle_at", "syncfs", "setns",
    "kcmp", "sched_setattr", "renameat2", "seccomp", "memfd_create",
    "execveat", "membarrier", "mlock2", "pwritev2", "pkey_mprotect", "pkey_alloc", "pkey_free",
    "rseq", "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "pidfd_open", "clone3", "close_range", "openat2", "pidfd_getfd", "faccessat2",
    "process_madvise", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
    "memfd_secret", "process_mrelease", "fchmodat2", "mseal", "settimeofday", "clock_settime",
    "remap_file_pages", "sethostname", "setdomainname",
];

/// A call that has returned.
pub struct Returned<'a> {
    pub name: &'a str,
    pub arguments: [u64; 6],
    pub result: u64,
    pub memory: &'a Memory,
}

impl Returned<'_> {
    /// The memory that it may have written to; none if that is not known. More than it has
    /// written does no harm.
    pub fn written(&self) -> Option<Vec<Range<Address>>> {
        let mut ranges = Vec::new();
        for output in of(self.name)? {
            let at = self.arguments[output.argument];
            // Small numbers are no pointers: which argument is one may depend on another.
            if at >= 0x1000 && self.looks_at(output.argument) {
                self.add(output, at, &mut ranges)?;
            }
        }
        ranges.retain(|range| !range.is_empty());
        Some(ranges)
    }

    /// Whether the call knows such an argument; else a register holds what was left in it,
    /// which may point anywhere: also to what another thread is just mapping.
    fn looks_at(&self, argument: usize) -> bool {
        let command = self.arguments[1] as u32;
        match (self.name, argument) {
            // FUTEX_WAKE_OP, FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI
            ("futex", 4) => matches!(command & 0x7f, 5 | 11 | 12),
            // F_GETLK, F_GETOWN_EX, F_GETOWNER_UIDS, F_OFD_GETLK and those of hints
            ("fcntl", 2) => matches!(command, 5 | 16 | 17 | 36 | 1035 | 1037),
            _ => true,
        }
    }

    /// The memory that it may be writing to while it has not returned.
    pub fn most(&self) -> Vec<Range<Address>> {
        /// More than any call takes.
        const ALL: u64 = 1 << 31;
        let result = match self.name {
            "readv" | "preadv" | "preadv2" | "process_vm_readv" | "process_vm_writev"
            | "recvmsg" => ALL,
            // How much or how many are asked for.
            "getgroups" => self.arguments[0].min(ALL),
            "getcwd" | "getrandom" => self.arguments[1].min(ALL),
            "readlinkat" | "getxattr" | "lgetxattr" | "fgetxattr" => self.arguments[3].min(ALL),
            _ => self.arguments[2].min(ALL),
        };
        Returned { result, ..*self }.written().unwrap_or_default()
    }

    fn add(&self, output: &Output, at: Address, to: &mut Vec<Range<Address>>) -> Option<()> {
        let failed = (-4095..0).contains(&(self.result as i64));
        let result = if failed { 0 } else { self.result };
        let size = match output.size {
            Size::Bytes(size) => size,
            Size::Result => result,
            Size::PerResult(each) => result.saturating_mul(each),
            Size::Argument(argument) => self.arguments[argument],
            Size::PerArgument(argument, each) => self.arguments[argument].saturating_mul(each),
            Size::Length(argument) => self.length(self.arguments[argument]),
            Size::Bits(argument) => (self.arguments[argument] as u32 as u64).div_ceil(64) * 8,
            Size::PerPage(argument) => self.arguments[argument].div_ceil(crate::memory::PAGE),
            Size::TypedResult => result + 8,
            Size::Vectors(argument) => return self.vectors(at, self.arguments[argument], to),
            Size::Message => return self.message(at, result, to),
            Size::Messages => {
                for number in 0..result {
                    let header = at + 64 * number;
                    let length = self.memory.read_u64(header + 56).unwrap_or(0) as u32;
                    self.message(header, length.into(), to);
                    to.push(header + 56..header + 60);
                }
                return Some(());
            }
            Size::DeviceControl => device_control(self.arguments[1]),
        };
        to.push(at..at.saturating_add(size));
        Some(())
    }

    /// The length that a `socklen_t` tells after the call: not more than fits an address.
    fn length(&self, at: Address) -> u64 {
        let length = self.memory.read_u64(at).unwrap_or(0) as u32;
        u64::from(length.min(1 << 16))
    }

    fn vectors(&self, at: Address, count: u64, to: &mut Vec<Range<Address>>) -> Option<()> {
        let mut left = if (-4095..0).contains(&(self.result as i64)) { 0 } else { self.result };
        for number in 0..count.min(1024) {
            let word = |offset: u64| self.memory.read_u64(at.wrapping_add(16 * number + offset));
            let (Ok(start), Ok(size)) = (word(0), word(8)) else {
                // The kernel could not read them either.
                break;
            };
            let size = size.min(left);
            to.push(start..start.saturating_add(size));
            left -= size;
        }
        Some(())
    }

    /// What was received: the address, the buffers, the control data and the header.
    fn message(&self, header: Address, bytes: u64, to: &mut Vec<Range<Address>>) -> Option<()> {
        let field = |offset: u64| self.memory.read_u64(header + offset).unwrap_or(0);
        let (name, name_size) = (field(0), field(8) as u32);
        let (vectors, count) = (field(16), field(24));
        let (control, control_size) = (field(32), field(40));
        to.push(header..header + 56);
        if name != 0 {
            to.push(name..name.saturating_add(name_size.min(1 << 16).into()));
        }
        if control != 0 {
            to.push(control..control.saturating_add(control_size.min(1 << 20)));
        }
        let received = Returned { result: bytes, ..*self };
        received.vectors(vectors, count, to)
    }
}

/// How much an `ioctl` may write.
fn device_control(number: u64) -> u64 {
    const READS: u64 = 2;
    let (direction, size) = (number >> 30 & 3, number >> 16 & 0x3fff);
    if direction & READS != 0 {
        return size;
    }
    match number {
        0x5401 => 60, // TCGETS
        0x5405 => 18, // TCGETA
        0x5413 => 8,  // TIOCGWINSZ
        // Numbers and names: TIOCGPGRP, TIOCGSID, TIOCOUTQ, FIONREAD and others.
        0x5400..=0x54ff => 64,
        // Of network devices: an `ifreq`, or a list of them.
        0x8900..=0x89ff => 40,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_programs_make_is_listed() {
        let known = (0..500).filter_map(crate::calls::name);
        let missing: Vec<&str> = known.filter(|name| of(name).is_none()).collect();
        // Calls of administrators, and those that no kernel has any more.
        let rare = missing.iter().all(|name| RARE.contains(name));
        assert!(rare, "{missing:?}");
    }

    /// A buffer that the kernel fills while other threads run must not be compared.
    #[test]
    fn a_call_under_way_may_be_writing_all_that_was_asked_for() {
        let memory = Memory::open(std::process::id() as i32).unwrap();
        let most =
            |name, arguments| Returned { name, arguments, result: 0, memory: &memory }.most();
        let page = 0x10000..0x11000;
        assert_eq!(most("read", [3, page.start, 0x1000, 0, 0, 0]), std::slice::from_ref(&page));
        assert_eq!(
            most("getrandom", [page.start, 0x1000, 0, 0, 0, 0]),
            std::slice::from_ref(&page)
        );
        assert_eq!(
            most("readlinkat", [3, 0x2000, page.start, 0x1000, 0, 0]),
            std::slice::from_ref(&page)
        );
        assert_eq!(most("getgroups", [0x400, page.start, 0, 0, 0, 0]), [page]);
    }

    #[test]
    fn what_was_left_in_a_register_is_no_argument() {
        let memory = Memory::open(std::process::id() as i32).unwrap();
        let (wait, wake_with) = (0x80, 0x85);
        let word = 0x10000..0x10004;
        let written = |command| {
            let arguments = [word.start, command, 1, 0, 0x20000, 0];
            Returned { name: "futex", arguments, result: 0, memory: &memory }.written().unwrap()
        };
        assert_eq!(written(wait), std::slice::from_ref(&word));
        assert_eq!(written(wake_with), [word.clone(), 0x20000..0x20004]);
    }

    #[rustfmt::skip]
    const RARE: &[&str] = &[
        "ptrace", "uselib", "sysfs", "vhangup", "pivot_root", "_sysctl", "acct", "mount",
        "umount2", "swapon", "swapoff", "reboot", "iopl", "ioperm", "create_module",
        "init_module", "delete_module", "get_kernel_syms", "query_module", "quotactl",
        "nfsservctl", "getpmsg", "putpmsg", "afs_syscall", "tuxcall", "security",
        "set_thread_area", "io_submit", "io_cancel", "get_thread_area", "lookup_dcookie",
        "epoll_ctl_old", "epoll_wait_old", "vserver", "kexec_load", "migrate_pages", "move_pages",
        "fanotify_init", "fanotify_mark", "finit_module", "kexec_file_load", "bpf",
        "userfaultfd", "io_pgetevents", "uretprobe", "open_tree", "move_mount", "fsopen",
        "fsconfig", "fsmount", "fspick", "mount_setattr", "quotactl_fd", "futex_waitv",
        "set_mempolicy_home_node", "map_shadow_stack", "futex_wake", "futex_wait",
        "futex_requeue", "statmount", "listmount", "lsm_get_self_attr", "lsm_set_self_attr",
        "lsm_list_modules", "setxattrat", "getxattrat", "listxattrat", "removexattrat",
        "open_tree_attr",
    ];
}
