//! `bpf(2)`: maps, programs, links, and what the kernel says about them.
#![expect(unsafe_code, reason = "bpf(2) has no wrapper in libc")]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::asm::Insn;

/// Largest number of CPUs a kernel can be built for (`NR_CPUS` on x86-64). Buffers for per-CPU
/// values have room for all of them: the kernel writes one value per possible CPU and never asks for the size.
const MOST_CPUS: usize = 8192;

/// `enum bpf_map_type`: those with one value for all CPUs.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum MapKind {
    Array = 2,
    XdpSockets = 17,
    ReuseportSockets = 20,
}

/// `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum ProgramKind {
    /// Runs where the kernel has an event, in the context of what made it.
    Tracepoint = 5,
    Xdp = 6,
    ReuseportSelect = 21,
    /// Runs by `BPF_PROG_TEST_RUN`, in the context of the caller (Linux 5.14).
    Syscall = 31,
}

/// The license that a program declares; the kernel restricts some helpers to programs under the GPL.
#[derive(Clone, Copy, Debug)]
pub enum License {
    Apache,
    /// For a program whose few instructions may be used under the MIT license or the GPL, as the user likes.
    MitOrGpl,
}

/// `enum bpf_cmd`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    NextKey = 4,
    ProgramLoad = 5,
    ProgramRun = 10,
    ObjectInfo = 15,
    MapFreeze = 22,
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
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
struct ProgramRun {
    program: u32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
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
    // SAFETY: as `bpf`; the descriptor is new and has no other owner.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attr)?)) }
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as u64
}

/// A map with 32-bit keys from 0 and values of type `V`, not per CPU.
#[derive(Debug)]
pub struct Map<V> {
    fd: OwnedFd,
    value: PhantomData<V>,
}

impl<V: Copy> Map<V> {
    /// A map with room for so many values.
    pub fn new(kind: MapKind, entries: usize) -> io::Result<Self> {
        Self::with_flags(kind, entries, 0)
    }

    /// A frozen array of one value, which the verifier takes for a constant.
    pub fn constant(value: &V) -> io::Result<Self> {
        const READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;
        let map = Self::with_flags(MapKind::Array, 1, READ_ONLY_FOR_PROGRAMS)?;
        map.set(0, value)?;
        let mut attr = map.fd.as_raw_fd() as u32;
        // SAFETY: the command reads `attr` alone.
        unsafe { bpf(Command::MapFreeze, &mut attr) }?;
        Ok(map)
    }

    fn with_flags(kind: MapKind, entries: usize, flags: u32) -> io::Result<Self> {
        Ok(Self {
            fd: create_map(kind as u32, size_of::<V>(), entries, flags)?,
            value: PhantomData,
        })
    }

    /// Sets `map[key]`.
    pub fn set(&self, key: u32, value: &V) -> io::Result<()> {
        let mut attr = MapElement {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address(&key),
            value: address(value),
            flags: 0,
        };
        // SAFETY: key and value outlive the call, which only reads them, and the map's values are as long as a `V`.
        unsafe { bpf(Command::MapUpdate, &mut attr) }.map(drop)
    }
}

impl<const N: usize> Map<[u8; N]> {
    /// `map[key]`
    pub fn get(&self, key: u32) -> io::Result<[u8; N]> {
        let mut value = [0; N];
        look_up(&self.fd, key, value.as_mut_ptr() as u64)?;
        Ok(value)
    }
}

impl<V> AsFd for Map<V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A hash table with keys of `K` words and values of `V` words, for programs and for us.
#[derive(Debug)]
pub struct Table<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Table<K, V> {
    /// A table with room for so many entries.
    pub fn new(entries: usize) -> io::Result<Self> {
        const HASH: u32 = 1;
        let word = size_of::<u64>();
        create_table(HASH, K * word, V * word, entries, 0).map(Self)
    }

    /// Sets an entry; one that is there already stays as it is.
    pub fn add(&self, key: &[u64; K], value: &[u64; V]) -> io::Result<()> {
        const NO_EXIST: u64 = 1;
        let mut attr = MapElement {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: address(key),
            value: address(value),
            flags: NO_EXIST,
        };
        // SAFETY: key and value are as long as the map's, outlive the call, and are only read.
        match unsafe { bpf(Command::MapUpdate, &mut attr) } {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            added => added.map(drop),
        }
    }

    /// Removes an entry.
    pub fn remove(&self, key: &[u64; K]) -> io::Result<()> {
        let mut attr = MapElement {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: address(key),
            value: 0,
            flags: 0,
        };
        // SAFETY: the key is as long as the map's, outlives the call, and is only read.
        unsafe { bpf(Command::MapDelete, &mut attr) }.map(drop)
    }

    /// All entries. The table must be at rest: a program that removes entries meanwhile makes it begin again.
    pub fn entries(&self) -> io::Result<Vec<([u64; K], [u64; V])>> {
        let mut entries = Vec::new();
        let mut last: Option<[u64; K]> = None;
        loop {
            let mut next = [0_u64; K];
            let mut attr = MapElement {
                map: self.0.as_raw_fd() as u32,
                padding: 0,
                key: last.as_ref().map_or(0, address),
                value: next.as_mut_ptr() as u64,
                flags: 0,
            };
            // SAFETY: the last key is none or as long as the map's, and there is room for the next.
            match unsafe { bpf(Command::NextKey, &mut attr) } {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(entries),
                step => step?,
            };
            let mut value = [0_u64; V];
            let mut attr = MapElement {
                map: self.0.as_raw_fd() as u32,
                padding: 0,
                key: address(&next),
                value: value.as_mut_ptr() as u64,
                flags: 0,
            };
            // SAFETY: the key is as long as the map's, and there is room for a value.
            unsafe { bpf(Command::MapLookup, &mut attr) }?;
            entries.push((next, value));
            last = Some(next);
        }
    }
}

impl<const K: usize, const V: usize> AsFd for Table<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Stacks by their numbers, as `bpf_get_stackid` keeps them.
#[derive(Debug)]
pub struct StackTraces(OwnedFd);

impl StackTraces {
    /// Frames of a stack at most (`PERF_MAX_STACK_DEPTH`).
    pub const DEEPEST: usize = 127;

    /// A map with room for so many stacks, a power of two; each has one place where it can be.
    pub fn new(entries: usize) -> io::Result<Self> {
        const STACK_TRACE: u32 = 7;
        create_map(STACK_TRACE, Self::DEEPEST * size_of::<u64>(), entries, 0).map(Self)
    }

    /// The addresses of a stack, leaf first.
    pub fn get(&self, number: u32) -> io::Result<Vec<u64>> {
        let mut stack = vec![0_u64; Self::DEEPEST];
        look_up(&self.0, number, stack.as_mut_ptr() as u64)?;
        let end = stack.iter().position(|address| *address == 0);
        stack.truncate(end.unwrap_or(Self::DEEPEST));
        Ok(stack)
    }
}

impl AsFd for StackTraces {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An array of counters, `N` words for each CPU.
#[derive(Debug)]
pub struct PerCpu<const N: usize>(OwnedFd);

impl<const N: usize> PerCpu<N> {
    /// One set of counters, all of them zero.
    pub fn new() -> io::Result<Self> {
        const PER_CPU_ARRAY: u32 = 6;
        create_map(PER_CPU_ARRAY, N * size_of::<u64>(), 1, 0).map(Self)
    }

    /// The counters of every possible CPU; trailing CPUs that the machine does not have read as zero.
    pub fn values(&self) -> io::Result<Vec<[u64; N]>> {
        let mut values = vec![[0_u64; N]; MOST_CPUS];
        look_up(&self.0, 0, values.as_mut_ptr() as u64)?;
        Ok(values)
    }
}

impl<const N: usize> AsFd for PerCpu<N> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn create_map(kind: u32, value_size: usize, entries: usize, flags: u32) -> io::Result<OwnedFd> {
    create_table(kind, 4, value_size, entries, flags)
}

fn create_table(
    kind: u32,
    key_size: usize,
    value_size: usize,
    entries: usize,
    flags: u32,
) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        kind,
        key_size: key_size as u32,
        value_size: value_size as u32,
        max_entries: entries as u32,
        flags,
    };
    // SAFETY: the command reads `attr` alone.
    unsafe { bpf_new(Command::MapCreate, &mut attr) }
}

/// Reads `map[key]` to the address `value`, where the callers have room for a value of that map.
fn look_up(map: &OwnedFd, key: u32, value: u64) -> io::Result<()> {
    let mut attr = MapElement {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: address(&key),
        value,
        flags: 0,
    };
    // SAFETY: the key outlives the call, and there is room for the value: of a map of `[u8; N]` or of stacks it is as long, and
    // of one per CPU there are as many as a kernel can have.
    unsafe { bpf(Command::MapLookup, &mut attr) }.map(drop)
}

/// Loads a program. When the verifier refuses it, the last line of its reasoning is in the error.
pub fn load(kind: ProgramKind, license: License, program: &[Insn]) -> io::Result<OwnedFd> {
    /// `BPF_F_SLEEPABLE`: programs that run in the context of a system call must have it.
    const SLEEPABLE: u32 = 1 << 4;
    let license = match license {
        License::Apache => c"Apache-2.0",
        License::MitOrGpl => c"Dual MIT/GPL",
    };
    let mut attr = ProgramLoad {
        kind: kind as u32,
        instructions: program.len() as u32,
        code: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: match kind {
            ProgramKind::Syscall => SLEEPABLE,
            ProgramKind::Tracepoint | ProgramKind::Xdp | ProgramKind::ReuseportSelect => 0,
        },
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
pub fn attach_xdp(program: &OwnedFd, device: u32, native: bool) -> io::Result<OwnedFd> {
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
pub fn link_program(link: &OwnedFd) -> io::Result<(u32, u32)> {
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
pub fn run_on(program: &OwnedFd, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    let mut after = vec![0_u8; packet.len() + 256];
    let mut attr = ProgramRun {
        program: program.as_raw_fd() as u32,
        result: 0,
        size_in: packet.len() as u32,
        size_out: after.len() as u32,
        data_in: packet.as_ptr() as u64,
        data_out: after.as_mut_ptr() as u64,
        repeat: 1,
        duration: 0,
    };
    // SAFETY: both packets are valid for the sizes given.
    unsafe { bpf(Command::ProgramRun, &mut attr) }?;
    after.truncate(attr.size_out as usize);
    Ok((attr.result, after))
}

/// Runs a program of [`ProgramKind::Syscall`] once: what it returns.
pub fn run(program: &OwnedFd) -> io::Result<u32> {
    let mut attr = ProgramRun {
        program: program.as_raw_fd() as u32,
        result: 0,
        size_in: 0,
        size_out: 0,
        data_in: 0,
        data_out: 0,
        repeat: 0,
        duration: 0,
    };
    // SAFETY: the command reads and writes `attr` alone.
    unsafe { bpf(Command::ProgramRun, &mut attr) }?;
    Ok(attr.result)
}
