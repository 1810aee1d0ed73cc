//! System call filters, made of classic BPF.

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    sock_filter, sock_fprog,
};

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const FIRST_ARGUMENT_LOW: u32 = 16;

/// What a container's default filter refuses with EPERM and a program might try.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_sysfs,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_uselib,
    libc::SYS_userfaultfd,
    libc::SYS_ustat,
    libc::SYS_vhangup,
];

/// The arguments of personality that a container's default filter lets through:
/// the default personality, and the question which one it is.
const PERSONALITIES: [u32; 2] = [0, 0xffff_ffff];

/// Refuses, from here on, what a container's default filter refuses.
pub fn refuse_like_a_container() -> io::Result<()> {
    const LENGTH: usize = 2 * REFUSED.len() + 7;
    // On the stack: this runs between fork and exec, where nothing may allocate.
    let mut filter = [answer(SECCOMP_RET_ALLOW); LENGTH];
    filter[0] = load(NUMBER);
    for (index, number) in REFUSED.iter().enumerate() {
        filter[1 + 2 * index] = unless(*number as u32, 1);
        filter[2 + 2 * index] = refuse(libc::EPERM);
    }
    let rest = 1 + 2 * REFUSED.len();
    filter[rest] = unless(libc::SYS_personality as u32, 4);
    filter[rest + 1] = load(FIRST_ARGUMENT_LOW);
    filter[rest + 2] = when(PERSONALITIES[0], 2);
    filter[rest + 3] = when(PERSONALITIES[1], 1);
    filter[rest + 4] = refuse(libc::EPERM);
    install(&filter)
}

/// Makes `rseq` answer ENOSYS, from here on.
pub fn without_rseq() -> io::Result<()> {
    without(libc::SYS_rseq, libc::ENOSYS)
}

/// Refuses `ptrace`, from here on, as containers do on old kernels.
pub fn without_ptrace() -> io::Result<()> {
    without(libc::SYS_ptrace, libc::EPERM)
}

fn without(number: i64, errno: i32) -> io::Result<()> {
    install(&[load(NUMBER), unless(number as u32, 1), refuse(errno), answer(SECCOMP_RET_ALLOW)])
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Skips `count` instructions when the loaded value is not `value`.
fn unless(value: u32, count: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf: count, k: value }
}

/// Skips `count` instructions when the loaded value is `value`.
fn when(value: u32, count: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: count, jf: 0, k: value }
}

fn refuse(errno: i32) -> sock_filter {
    answer(SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

fn answer(value: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: value }
}

fn install(filter: &[sock_filter]) -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: `program` and the filter it points to live through the call, which
    // only reads them.
    let result =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
