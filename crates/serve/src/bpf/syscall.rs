//! `bpf(2)`: maps, programs, links, and what the kernel says about them.
#![expect(unsafe_code, reason = "bpf(2) has no wrapper in libc")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use super::asm::Insn;

/// Largest number of CPUs a kernel can be built for (`NR_CPUS` on x86-64). Buffers for per-CPU
/// values have room for all of them: the kernel writes one value per possible CPU and never asks for the size.
const MOST_CPUS: usize = 8192;

/// `enum bpf_map_type`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum MapKind {
    Array = 2,
    PerCpuArray = 6,
    XdpSockets = 17,
    ReuseportSockets = 20,
}

/// `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum ProgramKind {
    Xdp = 6,
    ReuseportSelect = 21,
}

/// `enum bpf_cmd`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    #[cfg(test)]
    ProgramRun = 10,
    ObjectInfo = 15,
    LinkCreate = 28,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach_kind: u32,
    flags: u32,
}

#[repr(C)]
struct ObjectInfo {
    object: u32,
    size: u32,
    info: u64,
}

/// One `bpf(2)` command. The struct behind `attr` must be the prefix of `union bpf_attr` that `command`
/// reads, and the addresses in it must be valid for what the command reads and writes there.
unsafe fn bpf<T>(command: Command, attr: &mut T) -> io::Result<i32> {
    // SAFETY: `attr` is valid for its size; the caller vouches for the addresses inside.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as u32,
            std::ptr::from_mut(attr),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as i32)
}

/// One `bpf(2)` command that returns a new descriptor.
unsafe fn bpf_new<T>(command: Command, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: as `bpf`; the descriptor is new and nobody else's.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attr)?)) }
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as u64
}

/// A map with 32-bit keys from 0 and values of `value_size` bytes.
pub(crate) fn create_map(kind: MapKind, value_size: usize, entries: usize) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        kind: kind as u32,
        key_size: 4,
        value_size: value_size as u32,
        max_entries: entries as u32,
        flags: 0,
    };
    // SAFETY: the command reads `attr` alone.
    unsafe { bpf_new(Command::MapCreate, &mut attr) }
}

/// Sets `map[key]`; the map's values must be `size_of::<V>()` bytes.
pub(crate) fn update<V>(map: &OwnedFd, key: u32, value: &V) -> io::Result<()> {
    let mut attr = MapElement {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: address(&key),
        value: address(value),
        flags: 0,
    };
    // SAFETY: key and value outlive the call, which only reads them.
    unsafe { bpf(Command::MapUpdate, &mut attr) }.map(drop)
}

/// `map[key]` of a per-CPU map with `N` words per value, one value per possible CPU; trailing CPUs that
/// the machine does not have read as zero.
pub(crate) fn per_cpu_values<const N: usize>(map: &OwnedFd, key: u32) -> io::Result<Vec<[u64; N]>> {
    let mut values = vec![[0_u64; N]; MOST_CPUS];
    let mut attr = MapElement {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: address(&key),
        value: values.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: `values` holds a value for every CPU a kernel can have.
    unsafe { bpf(Command::MapLookup, &mut attr) }?;
    Ok(values)
}

/// Loads a program. When the verifier refuses it, the last line of its reasoning is in the error.
pub(crate) fn load(kind: ProgramKind, program: &[Insn]) -> io::Result<OwnedFd> {
    let license = c"Apache-2.0";
    let mut attr = ProgramLoad {
        kind: kind as u32,
        instructions: program.len() as u32,
        code: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    // SAFETY: code and license outlive the call, which only reads them.
    let first = match unsafe { bpf_new(Command::ProgramLoad, &mut attr) } {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    if !matches!(first.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) {
        return Err(first);
    }
    let mut log = vec![0_u8; 1 << 20];
    attr.log_level = 1;
    attr.log_size = log.len() as u32;
    attr.log = log.as_mut_ptr() as u64;
    // SAFETY: as above, and the kernel writes at most `log_size` bytes of log.
    if let Ok(program) = unsafe { bpf_new(Command::ProgramLoad, &mut attr) } {
        return Ok(program);
    }
    let text = String::from_utf8_lossy(&log);
    let reason = text
        .trim_end_matches(['\0', '\n'])
        .lines()
        .rev()
        .find(|line| !line.starts_with("processed"))
        .unwrap_or_default();
    Err(io::Error::new(first.kind(), format!("{first} ({reason})")))
}

/// Attaches an XDP program to a device by a link: the program leaves with the last descriptor of the link.
pub(crate) fn attach_xdp(program: &OwnedFd, device: u32, native: bool) -> io::Result<OwnedFd> {
    const BPF_XDP: u32 = 37;
    const SKB_MODE: u32 = 1 << 1;
    const DRIVER_MODE: u32 = 1 << 2;
    let mut attr = LinkCreate {
        program: program.as_raw_fd() as u32,
        device,
        attach_kind: BPF_XDP,
        flags: if native { DRIVER_MODE } else { SKB_MODE },
    };
    // SAFETY: the command reads `attr` alone.
    unsafe { bpf_new(Command::LinkCreate, &mut attr) }
}

/// Id of the program behind an XDP link, and the index of the device it sits on.
pub(crate) fn link_program(link: &OwnedFd) -> io::Result<(u32, u32)> {
    // The head of struct bpf_link_info: type, id, prog_id, padding, then for XDP: ifindex.
    let mut info = [0_u32; 6];
    let mut attr = ObjectInfo {
        object: link.as_raw_fd() as u32,
        size: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most `size` bytes.
    unsafe { bpf(Command::ObjectInfo, &mut attr) }?;
    Ok((info[2], info[4]))
}

/// Runs an XDP program once on `packet`: its verdict and the packet afterwards.
#[cfg(test)]
pub(crate) fn run(program: &OwnedFd, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    #[repr(C)]
    struct ProgramRun {
        program: u32,
        verdict: u32,
        size_in: u32,
        size_out: u32,
        packet_in: u64,
        packet_out: u64,
        repeat: u32,
        duration: u32,
    }
    let mut after = vec![0_u8; packet.len() + 256];
    let mut attr = ProgramRun {
        program: program.as_raw_fd() as u32,
        verdict: 0,
        size_in: packet.len() as u32,
        size_out: after.len() as u32,
        packet_in: packet.as_ptr() as u64,
        packet_out: after.as_mut_ptr() as u64,
        repeat: 1,
        duration: 0,
    };
    // SAFETY: both packets are valid for the sizes given.
    unsafe { bpf(Command::ProgramRun, &mut attr) }?;
    after.truncate(attr.size_out as usize);
    Ok((attr.verdict, after))
}
