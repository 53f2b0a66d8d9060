//! The frame pointer of a function of which only the stack pointer is known, from how the function begins.
//!
//! `push rbp; mov rbp, rsp`, a push for each register that it saves, `sub rsp, SIZE`: so far the stack pointer is below the frame pointer at each
//! call. The unwind table knows how many registers are saved, the code knows the size. Functions that move the stack pointer later (`alloca`) are
//! followed wrongly, mostly to an address that is no code. Sources: the System V ABI of AMD64, 3.2.2; code of GCC and LLVM.

use super::machine::{FP, PC, Registers, SP};
use super::tables::{Frame, Register, Rule};

/// Bytes of a function that are read: it begins within them.
pub(super) const READ: usize = 128;

const WORD: u64 = size_of::<u64>() as u64;
/// The alignment of the stack pointer at a call.
const ALIGNED: u64 = 16;

/// The frame pointer of a function with this rule and this beginning, where it is needed and not known.
pub(super) fn frame_pointer(
    rule: &Rule,
    code: &[u8],
    registers: &Registers,
    is_caller: bool,
) -> Option<u64> {
    let Frame::Register(FP, _) = rule.frame else {
        return None;
    };
    let keeps_pointer = cfg!(target_arch = "x86_64")
        && [&[0x48, 0x89, 0xe5][..], &[0x48, 0x8b, 0xec]]
            .iter()
            .any(|moved| code.windows(3).take(READ / 4).any(|bytes| bytes == *moved));
    if !keeps_pointer {
        return None;
    }
    let saved = rule.registers.iter().filter(|(number, register)| {
        matches!(register, Register::Saved(_)) && ![FP, PC, rule.returns_by].contains(number)
    });
    let size = saved.count() as u64 * WORD + reserved(code).unwrap_or(0);
    // A push of any register aligns what is odd.
    let size = if is_caller {
        size.next_multiple_of(ALIGNED)
    } else {
        size
    };
    registers[SP]?.checked_add(size)
}

/// What `sub rsp, SIZE` reserves.
fn reserved(code: &[u8]) -> Option<u64> {
    code.windows(7).find_map(|bytes| match *bytes {
        [0x48, 0x83, 0xec, size, ..] => u64::try_from(size.cast_signed()).ok(),
        [0x48, 0x81, 0xec, a, b, c, d] => Some(u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_reserves_is_in_its_code() {
        let short = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x18, 0, 0, 0];
        assert_eq!(reserved(&short), Some(24));
        let long = [0x41, 0x57, 0x48, 0x81, 0xec, 0x00, 0x10, 0, 0];
        assert_eq!(reserved(&long), Some(4096));
        // It gives room back: `sub rsp, -128`.
        assert_eq!(reserved(&[0x48, 0x83, 0xec, 0x80, 0, 0, 0]), None);
        assert_eq!(reserved(&[]), None);
    }
}
