//! The few `bpf(2)` commands that steering and the XDP programs need, on file descriptors that close themselves.
//!
//! Argument structs are prefixes of `union bpf_attr` (include/uapi/linux/bpf.h): the kernel takes
//! any prefix and treats the rest as zero.

pub(crate) mod asm;
pub(crate) mod xdp_echo;
pub(crate) mod xdp_redirect;

mod datagram;
mod syscall;

#[cfg(test)]
pub(crate) use syscall::run;
pub(crate) use syscall::{
    MapKind, ProgramKind, attach_xdp, create_map, link_program, load, per_cpu_values, update,
};
