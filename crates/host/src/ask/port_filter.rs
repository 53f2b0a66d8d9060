//! A filter of sockets by port that the kernel runs while it lists them: 100,000 others cost a test each instead of a message each.
//!
//! The program is a row of conditions, each with two ways to go on as a distance in bytes: `yes` and `no`. A socket is listed if the way
//! ends exactly at the end of the program, and left out if it ends beyond. Source: `inet_diag_bc_run` and `inet_diag_bc_audit` of
//! `net/ipv4/inet_diag.c`, Linux 6.18.

use std::collections::BTreeSet;

/// `INET_DIAG_REQ_BYTECODE`: the attribute that holds it.
pub(super) const BYTECODE: u16 = 1;

/// `INET_DIAG_BC_JMP`: goes on by `no`.
const JUMP: u8 = 1;
/// `INET_DIAG_BC_S_EQ`: the local port is the number in the second half (since Linux 4.16).
const LOCAL_IS: u8 = 11;
/// `INET_DIAG_BC_D_EQ`: the same of the remote port.
const REMOTE_IS: u8 = 12;

/// struct `inet_diag_bc_op`: code, `yes`, `no`.
const OPERATION: usize = 4;
/// A condition is an operation, and another one whose `no` is the port.
const CONDITION: usize = 2 * OPERATION;

/// Sockets one of whose ends has one of these ports.
pub(super) fn either_end(ports: &BTreeSet<u16>) -> Vec<u8> {
    let conditions: Vec<(u8, u16)> = ports
        .iter()
        .flat_map(|port| [(LOCAL_IS, *port), (REMOTE_IS, *port)])
        .collect();
    let step = CONDITION + OPERATION;
    let length = (conditions.len() * step).saturating_sub(OPERATION);
    let mut program = Vec::with_capacity(length);
    for (number, (code, port)) in conditions.iter().enumerate() {
        let is_last = number + 1 == conditions.len();
        // Past the jump is the next condition; past the end of the program, nothing.
        operation(&mut program, *code, CONDITION, step);
        operation(&mut program, 0, 0, usize::from(*port));
        if !is_last {
            let to_the_end = length - program.len();
            operation(&mut program, JUMP, OPERATION, to_the_end);
        }
    }
    program
}

fn operation(program: &mut Vec<u8>, code: u8, yes: usize, no: usize) {
    let yes = u8::try_from(yes).expect("a step is 12 bytes");
    // 64 services at most can be named.
    let no = u16::try_from(no).expect("a program of so many ports is shorter than 64 KiB");
    program.extend([code, yes]);
    program.extend(no.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel runs it.
    fn lists(program: &[u8], local: u16, remote: u16) -> bool {
        let mut left = program.len().cast_signed();
        let mut at = 0;
        while left > 0 {
            let number = |at: usize| u16::from_ne_bytes([program[at], program[at + 1]]);
            let is_met = match program[at] {
                JUMP => false,
                LOCAL_IS => number(at + OPERATION + 2) == local,
                REMOTE_IS => number(at + OPERATION + 2) == remote,
                other => panic!("{other}"),
            };
            let step = if is_met {
                usize::from(program[at + 1])
            } else {
                usize::from(number(at + 2))
            };
            at += step;
            left -= step.cast_signed();
        }
        left == 0
    }

    #[test]
    fn a_socket_is_listed_if_one_of_its_ends_has_one_of_the_ports() {
        for ports in [vec![80], vec![80, 443], (1..100).collect()] {
            let program = either_end(&ports.iter().copied().collect());
            for (local, remote) in [
                (80, 9),
                (9, 80),
                (80, 80),
                (443, 1000),
                (1000, 443),
                (1000, 1001),
            ] {
                let expected = ports.contains(&local) || ports.contains(&remote);
                assert_eq!(
                    lists(&program, local, remote),
                    expected,
                    "{ports:?} {local} {remote}"
                );
            }
        }
    }
}
