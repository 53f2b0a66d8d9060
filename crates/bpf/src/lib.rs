//! Programs for the kernel without a compiler: a tiny assembler, and the few `bpf(2)` commands that load and run them.
//!
//! Maps, programs and links are file descriptors that close themselves: nothing outlives the process.
//! Argument structs are prefixes of `union bpf_attr` (include/uapi/linux/bpf.h): the kernel takes any prefix and treats the
//! rest as zero.

pub mod asm;
mod syscall;

pub use syscall::{
    License, Map, MapKind, PerCpu, ProgramKind, StackTraces, Table, attach_xdp, link_program, load,
    run, run_on,
};
