//! Asks the kernel for the function at an address.
//!
//! A program of type `syscall` prints an address by `bpf_snprintf` with `%ps`, which the kernel looks up in its own table: some
//! microseconds for each address, where `/proc/kallsyms` is 100,000 lines. The program declares the license `Dual MIT/GPL`, because the
//! kernel restricts the helper to programs under the GPL; that concerns these few instructions alone.
//! Source: `bpf_snprintf` of kernel/bpf/helpers.c and `bpf_prog_test_run_syscall` of `net/bpf/test_run.c`, Linux 6.18.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rungwise_bpf::asm::{If, Insn, Program, Reg, Width};
use rungwise_bpf::{self as bpf, License, Map, MapKind, ProgramKind};
use rungwise_formats::kallsyms::Names;

/// Addresses from which on the whole list costs less.
pub(crate) const MOST: usize = 8192;

/// What the program reads and writes: an address of 8 bytes, then a name with its module. The name of a function has at most 511
/// bytes (`KSYM_NAME_LEN` of Linux 6.1), and all but a few have less than 100; a longer one is cut.
const ASKED: i32 = 512;
const ADDRESS: i32 = 8;

/// The functions that contain these addresses. An address that no function contains has none.
///
/// # Errors
/// If the kernel knows no such program (before Linux 5.14) or does not let this process load one.
pub(crate) fn functions(addresses: &BTreeSet<u64>) -> io::Result<Names> {
    let format = Map::constant(b"%ps\0")?;
    let map = Map::<[u8; ASKED as usize]>::new(MapKind::Array, 1)?;
    let print = print(map.as_fd(), format.as_fd());
    let program = bpf::load(ProgramKind::Syscall, License::MitOrGpl, &print)?;
    let mut found = Vec::with_capacity(addresses.len());
    for address in addresses {
        let mut asked = [0; ASKED as usize];
        asked[..ADDRESS as usize].copy_from_slice(&address.to_ne_bytes());
        map.set(0, &asked)?;
        bpf::run(&program)?;
        found.extend(name(&map.get(0)?[ADDRESS as usize..]).map(|name| (*address, name)));
    }
    Ok(found.into_iter().collect())
}

/// The name in `tcp_sendmsg` or `nft_do_chain [nf_tables]`; nothing in `0xffffffffc0001234`, which is no function.
fn name(text: &[u8]) -> Option<String> {
    let end = text.iter().position(|byte| matches!(byte, 0 | b' '))?;
    let name = String::from_utf8_lossy(&text[..end]);
    (!name.is_empty() && !name.starts_with("0x")).then(|| name.into_owned())
}

/// `bpf_snprintf(name, length of name, format, &address, 8)`, both of them in `map[0]`
fn print(map: BorrowedFd<'_>, format: BorrowedFd<'_>) -> Vec<Insn> {
    const LOOKUP: i32 = 1;
    const SNPRINTF: i32 = 165;
    let mut p = Program::default();
    let end = p.label();
    p.store_value(Width::Word, Reg::Frame, -4, 0);
    p.load_map(Reg::R1, map);
    p.copy(Reg::R2, Reg::Frame);
    p.add(Reg::R2, -4);
    p.call(LOOKUP);
    p.jump_if(Reg::R0, If::Equal, 0, end);
    // The arguments of the format must lie on the stack, not in the map.
    p.load(Width::Double, Reg::R1, Reg::R0, 0);
    p.store(Width::Double, Reg::Frame, -16, Reg::R1);
    p.copy(Reg::R1, Reg::R0);
    p.add(Reg::R1, ADDRESS);
    p.set(Reg::R2, ASKED - ADDRESS);
    p.load_value(Reg::R3, format);
    p.copy(Reg::R4, Reg::Frame);
    p.add(Reg::R4, -16);
    p.set(Reg::R5, ADDRESS);
    p.call(SNPRINTF);
    p.place(end);
    p.set(Reg::R0, 0);
    p.exit();
    p.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_function_has_no_name() {
        assert_eq!(name(b"tcp_sendmsg\0\0").as_deref(), Some("tcp_sendmsg"));
        assert_eq!(
            name(b"nft_do_chain [nf_tables]\0").as_deref(),
            Some("nft_do_chain")
        );
        for text in [&b"0xffffffffc0001234\0"[..], b"\0", b"cut_off"] {
            assert_eq!(name(text), None, "{text:?}");
        }
    }
}
