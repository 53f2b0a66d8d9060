//! Which socket of a reuseport group takes a datagram or a connection: a program that the kernel asks per datagram, or per SYN.
//!
//! The program belongs to the *group* and names members by index, in the order in which they were bound (UDP) or
//! began to listen (TCP). So it is attached once, when all are there, and membership never changes afterwards: a member that left would
//! pull the last one into its place.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use crate::config::Steering;
use crate::error::{Error, Feature};
use crate::read_back::Ledger;
use crate::socket;
use rungwise_bpf::asm::{If, Insn, Program, Reg, Width};
use rungwise_bpf::{self as bpf, License, Map, MapKind, ProgramKind};

const CBPF: Feature = Feature {
    switch: "steering",
    name: "SO_ATTACH_REUSEPORT_CBPF",
    since: "4.5",
    remedy: "upgrade",
};

const EBPF: Feature = Feature {
    switch: "steering",
    name: "BPF_PROG_TYPE_SK_REUSEPORT with a socket array",
    since: "4.19",
    remedy: "run as root or grant CAP_BPF and CAP_NET_ADMIN",
};

/// Attaches the program that `steering` asks for. `cpus[worker]` is where the worker is pinned or belongs;
/// `cpu_count` is above every CPU's number; `shown_by` says what shows that it works.
pub(crate) fn attach(
    steering: &Steering,
    sockets: &[OwnedFd],
    cpus: &[usize],
    cpu_count: usize,
    shown_by: &str,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    match steering {
        Steering::FlowHash => Ok(()),
        Steering::Cbpf => match attach_cbpf(&sockets[0], sockets.len()) {
            Ok(()) => {
                // No getsockopt tells; that a second program is refused or accepted would not either.
                let actual = format!(
                    "program accepted: CPU modulo {}; it cannot be read back, but {shown_by} show it",
                    sockets.len()
                );
                ledger.holds("steering", "cbpf", actual);
                Ok(())
            }
            Err(error) => {
                ledger.fall_back("steering", "cbpf", "flow hash", CBPF.refused("cbpf", error))
            }
        },
        Steering::Ebpf { map } => {
            let map = if map.is_empty() {
                derive(cpus, sockets.len(), cpu_count)
            } else {
                map.clone()
            };
            match attach_ebpf(sockets, &map) {
                Ok(()) => {
                    let named: Vec<_> = map
                        .iter()
                        .enumerate()
                        .map(|(cpu, worker)| format!("{cpu}:{worker}"))
                        .collect();
                    let actual = format!(
                        "program accepted: cpu:worker {}; it cannot be read back, but {shown_by} show it",
                        named.join(" ")
                    );
                    ledger.holds("steering", "ebpf", actual);
                    Ok(())
                }
                Err(error) => {
                    ledger.fall_back("steering", "ebpf", "flow hash", EBPF.refused("ebpf", error))
                }
            }
        }
    }
}

/// A worker for each CPU: the one that lives there, and for CPUs where none does the workers in turn.
fn derive(cpus: &[usize], workers: usize, cpu_count: usize) -> Vec<usize> {
    (0..cpu_count)
        .map(|cpu| {
            cpus.iter()
                .position(|home| *home == cpu)
                .unwrap_or(cpu % workers)
        })
        .collect()
}

fn attach_cbpf(member: &OwnedFd, workers: usize) -> io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let cpu = (libc::SKF_AD_OFF + libc::SKF_AD_CPU).cast_unsigned();
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, cpu),
        statement(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, workers as u32),
        statement(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    socket::set_value(
        member,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        &program,
    )
}

fn attach_ebpf(sockets: &[OwnedFd], map: &[usize]) -> io::Result<()> {
    let workers = Map::<u32>::new(MapKind::Array, map.len())?;
    for (cpu, worker) in (0..).zip(map) {
        workers.set(cpu, &(*worker as u32))?;
    }
    let members = Map::<u64>::new(MapKind::ReuseportSockets, sockets.len())?;
    for (index, socket) in (0..).zip(sockets) {
        members.set(index, &(socket.as_raw_fd() as u64))?;
    }
    let program = bpf::load(
        ProgramKind::ReuseportSelect,
        License::Apache,
        &select(&workers, &members),
    )?;
    // The group holds the program from here on, and the program its maps.
    socket::set(
        &sockets[0],
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_EBPF,
        program.as_raw_fd(),
    )
}

/// `members[workers[this CPU]]`; a CPU beyond the map falls to the flow hash.
fn select(workers: &Map<u32>, members: &Map<u64>) -> Vec<Insn> {
    const LOOKUP: i32 = 1;
    const PROCESSOR_ID: i32 = 8;
    const SELECT: i32 = 82;
    const SK_PASS: i32 = 1;
    let mut p = Program::default();
    let hash = p.label();
    p.copy(Reg::R6, Reg::R1);
    p.call(PROCESSOR_ID);
    p.store(Width::Word, Reg::Frame, -4, Reg::R0);
    p.load_map(Reg::R1, workers.as_fd());
    p.copy(Reg::R2, Reg::Frame);
    p.add(Reg::R2, -4);
    p.call(LOOKUP);
    p.jump_if(Reg::R0, If::Equal, 0, hash);
    p.load(Width::Word, Reg::R1, Reg::R0, 0);
    p.store(Width::Word, Reg::Frame, -4, Reg::R1);
    p.copy(Reg::R1, Reg::R6);
    p.load_map(Reg::R2, members.as_fd());
    p.copy(Reg::R3, Reg::Frame);
    p.add(Reg::R3, -4);
    p.set(Reg::R4, 0);
    p.call(SELECT);
    // Passing without a selected socket means the flow hash.
    p.place(hash);
    p.set(Reg::R0, SK_PASS);
    p.exit();
    p.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_gets_the_worker_that_lives_there_or_one_in_turn() {
        assert_eq!(derive(&[0, 1], 2, 4), [0, 1, 0, 1]);
        assert_eq!(derive(&[3, 1], 2, 4), [0, 1, 0, 0]);
        assert_eq!(derive(&[5], 1, 2), [0, 0]);
    }
}
