//! The frame pointer of a function of which only the stack pointer is known, from how the function begins.
//!
//! `push rbp; mov rbp, rsp`, a push for each register that it saves, `sub rsp, SIZE`: so far the stack pointer is below the frame pointer at each
//! call. A function that begins otherwise is not followed, nor is one of which the table knows more saved registers than were pushed. Where the
//! stack pointer moves later (`alloca`, arguments on the stack), the word that is taken for a return address is seldom behind a call of this
//! function; [`is_behind_call`] tells. Sources: the System V ABI of AMD64, 3.2.2; code of GCC and LLVM.

use super::machine::{FP, PC, Registers, SP};
use super::tables::{Frame, Register, Rule};

/// Bytes of a function that are read: it begins within them.
pub(super) const READ: usize = 96;

const WORD: u64 = size_of::<u64>() as u64;
/// The alignment of the stack pointer at a call, and of the frame pointer.
const ALIGNED: u64 = 16;

/// Whether the rule needs the frame pointer on a machine whose code is understood.
pub(super) fn is_needed(rule: &Rule) -> bool {
    cfg!(target_arch = "x86_64") && matches!(rule.frame, Frame::Register(FP, _))
}

/// The frame pointer of a function with this rule, `code` up to where it is or longer.
pub(super) fn frame_pointer(rule: &Rule, code: &[u8], registers: &Registers) -> Option<u64> {
    let saved = rule.registers.iter().filter(|(number, register)| {
        matches!(register, Register::Saved(_)) && ![FP, PC, rule.returns_by].contains(number)
    });
    let below = below_pointer(code, saved.count() as u64)?;
    let pointer = registers[SP]?.checked_add(below)?;
    pointer.is_multiple_of(ALIGNED).then_some(pointer)
}

/// How far the stack pointer is below the frame pointer after the beginning of a function that saves so many registers.
fn below_pointer(code: &[u8], saved: u64) -> Option<u64> {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let code = code.strip_prefix(&[0x55])?;
    let mut code = code
        .strip_prefix(&[0x48, 0x89, 0xe5])
        .or_else(|| code.strip_prefix(&[0x48, 0x8b, 0xec]))?;
    let (mut pushed, mut reserved) = (0, None);
    while let [first, rest @ ..] = code {
        code = match (first, rest) {
            // push: a register, or one of the upper eight. One more than are saved aligns the stack.
            (0x50..=0x57, rest) | (0x41, [0x50..=0x57, rest @ ..]) if reserved.is_none() => {
                pushed += 1;
                rest
            }
            // sub rsp, SIZE
            (0x48, [0x83, 0xec, size @ 0..=0x7f, rest @ ..]) if reserved.is_none() => {
                reserved = Some(u64::from(*size));
                rest
            }
            (0x48, [0x81, 0xec, a, b, c, d, rest @ ..]) if reserved.is_none() => {
                reserved = Some(u64::from(u32::from_le_bytes([*a, *b, *c, *d])));
                rest
            }
            // Between them compilers put other work: mov, lea, xor, test.
            _ => match other(code) {
                Some(rest) => rest,
                None => break,
            },
        };
        if reserved.is_some() {
            break;
        }
    }
    // A large frame is made in pages, each of which is touched: or [rsp], 0; mov [rsp], 0; and another sub.
    let is_in_pages = [
        &[0x48, 0x83, 0x0c, 0x24][..],
        &[0x48, 0xc7, 0x04, 0x24],
        &[0x48, 0x81, 0xec],
        &[0x48, 0x83, 0xec],
    ];
    if is_in_pages.iter().any(|page| code.starts_with(page)) {
        return None;
    }
    let size = pushed * WORD + reserved.unwrap_or(0);
    let is_all = pushed == saved || pushed == saved + 1;
    (is_all && size.is_multiple_of(ALIGNED)).then_some(size)
}

/// What is behind an instruction that changes neither the stack pointer nor the frame pointer: mov, movslq, lea, xor or test of registers or
/// memory, or mov of a number.
fn other(code: &[u8]) -> Option<&[u8]> {
    let (prefix, code) = match code {
        [prefix @ 0x40..=0x4f, rest @ ..] => (*prefix, rest),
        _ => (0, code),
    };
    let (operation, code) = code.split_first()?;
    let is_kept = |number: u8, upper: u8| matches!(number, 4 | 5) && prefix & upper == 0;
    if let 0xb8..=0xbf = operation {
        let length = if prefix & 8 == 0 { 4 } else { 8 };
        return code.get(length..).filter(|_| !is_kept(operation & 7, 1));
    }
    let operands = code.first()?;
    let (kind, register, other) = (operands >> 6, operands >> 3 & 7, operands & 7);
    let is_harmless = match operation {
        0x33 | 0x63 | 0x8b | 0x8d => !is_kept(register, 4),
        0x31 | 0x89 => kind != 3 || !is_kept(other, 1),
        0x85 => true,
        _ => false,
    };
    let mut length = 1;
    if kind != 3 {
        let base = if other == 4 {
            length += 1;
            code.get(1)? & 7
        } else {
            other
        };
        length += match kind {
            1 => 1,
            2 => 4,
            _ if base == 5 => 4,
            _ => 0,
        };
    }
    code.get(length..).filter(|_| is_harmless)
}

/// Whether `before`, the bytes before a return address, end with a call that may be one of the function that begins at `begin`. `read` reads
/// memory at an address: calls through a table of addresses (PLT, GOT) are followed. Calls of what a register holds, or memory at one, are believed.
pub(super) fn is_behind_call(
    before: [u8; 7],
    returns_to: u64,
    begin: u64,
    read: impl Fn(u64) -> Option<[u8; 16]>,
) -> bool {
    let place = |from: u64, by: [u8; 4]| from.checked_add_signed(i32::from_le_bytes(by).into());
    let is_begin = |slot: Option<u64>| {
        let address = slot
            .and_then(&read)
            .and_then(|bytes| bytes.first_chunk().copied());
        address.map(u64::from_le_bytes) == Some(begin)
    };
    if let [.., 0xe8, a, b, c, d] = before {
        let Some(target) = place(returns_to, [a, b, c, d]) else {
            return false;
        };
        if target == begin {
            return true;
        }
        // endbr64; bnd jmp [rip + ..]
        if let Some(stub) = read(target) {
            let code = stub
                .strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa])
                .unwrap_or(&stub);
            let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
            if let [0xff, 0x25, a, b, c, d, rest @ ..] = code {
                let behind = target.wrapping_add((stub.len() - rest.len()) as u64);
                return is_begin(place(behind, [*a, *b, *c, *d]));
            }
        }
    }
    if let [.., 0xff, 0x15, a, b, c, d] = before {
        return is_begin(place(returns_to, [a, b, c, d]));
    }
    // call r/m64: of two, three, six or seven bytes.
    (2..=7).any(|length| {
        let call = &before[7 - length..];
        let call = match call {
            [0x41, rest @ ..] if length > 2 => rest,
            _ => call,
        };
        let [0xff, operands, rest @ ..] = call else {
            return false;
        };
        let (kind, number, base) = (operands >> 6, operands >> 3 & 7, operands & 7);
        let operand = match (kind, base) {
            (2, 0..=3 | 5..) => 4,
            (2, 4) => 5,
            (1, 4) => 2,
            (1, _) | (0, 4) => 1,
            _ => 0,
        };
        number == 2 && rest.len() == operand
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_pointer_is_where_the_function_began() {
        let of = |code: &[u8], saved| below_pointer(code, saved);
        // LLVM: push rbp; mov rbp, rsp; push r15, r14, rbx; push rax to align.
        let llvm = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x53, 0x50];
        assert_eq!(of(&llvm, 3), Some(32));
        assert_eq!(of(&llvm, 5), None);
        // GCC: endbr64; push rbp; mov rbp, rsp; push r12; mov r12, rdi; push rbx; mov ebx, esi; sub rsp, 32.
        let gcc = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x49, 0x89, 0xfc, 0x53,
            0x89, 0xf3, 0x48, 0x83, 0xec, 0x20,
        ];
        assert_eq!(of(&gcc, 2), Some(48));
        // push rbp; mov rbp, rsp; push rbx; lea rbx, [rip+..]; mov rdi, rbx; sub rsp, 8.
        let lea = [
            0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x8d, 0x1d, 0x84, 0x2e, 0, 0, 0x48, 0x89, 0xdf,
            0x48, 0x83, 0xec, 0x08,
        ];
        assert_eq!(of(&lea, 1), Some(16));
        // mov edi, 7; mov [rsp+16], rdi; mov r12, [rax+rcx*8]; push rbx; push rax.
        let stores = [
            0x55, 0x48, 0x89, 0xe5, 0xbf, 7, 0, 0, 0, 0x48, 0x89, 0x7c, 0x24, 0x10, 0x4c, 0x8b,
            0x24, 0xc8, 0x53, 0x50,
        ];
        assert_eq!(of(&stores, 1), Some(16));
        let long = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0x00, 0x10, 0, 0];
        assert_eq!(of(&long, 0), Some(4096));
        // `sub rsp, -128`, `and rsp, -32`, a frame of pages, a new stack pointer, one that is cut, no frame pointer at all.
        let odd = [
            &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x80][..],
            &[0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xe4, 0xe0],
            &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0xe7, 0x53, 0x50],
            &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d],
            &[
                0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x83, 0x0c,
                0x24, 0,
            ],
            &[0x53, 0x48, 0x83, 0xec, 0x10],
            &[],
        ];
        for code in odd {
            assert_eq!(of(code, 1), None, "{code:x?}");
        }
    }

    #[test]
    fn a_return_address_is_behind_a_call_of_the_function() {
        let begin: u64 = 0x2000;
        let none = |_| None;
        let direct = [0x90, 0x90, 0xe8, 0xfb, 0x0f, 0, 0];
        assert!(is_behind_call(direct, 0x1005, begin, none));
        assert!(!is_behind_call(direct, 0x1006, begin, none));
        // A stub at 0x2001 whose slot is at 0x3000, with this address.
        let plt = |to: u64| {
            move |at: u64| {
                let mut bytes = [0; 16];
                match at {
                    0x2001 => bytes[..10]
                        .copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf5, 0x0f, 0, 0]),
                    0x3000 => bytes[..8].copy_from_slice(&to.to_le_bytes()),
                    _ => return None,
                }
                Some(bytes)
            }
        };
        assert!(is_behind_call(direct, 0x1006, begin, plt(begin)));
        assert!(!is_behind_call(direct, 0x1006, begin, plt(0x2001)));
        let table = [0, 0xff, 0x15, 0xfb, 0x1f, 0, 0];
        assert!(is_behind_call(table, 0x1005, begin, plt(begin)));
        assert!(!is_behind_call(table, 0x1005, begin, plt(7)));
        let calls = [
            [0, 0, 0, 0, 0, 0xff, 0xd0],
            [0, 0, 0, 0, 0x41, 0xff, 0xd4],
            [0, 0, 0, 0, 0xff, 0x50, 0x18],
            [0xff, 0x94, 0x24, 1, 2, 3, 4],
        ];
        for call in calls {
            assert!(is_behind_call(call, 0x1005, begin, none), "{call:x?}");
        }
        let jump = [0, 0xff, 0x25, 1, 2, 3, 4];
        for other in [[0; 7], [0x90; 7], jump] {
            assert!(!is_behind_call(other, 0x1005, begin, none), "{other:x?}");
        }
    }
}
