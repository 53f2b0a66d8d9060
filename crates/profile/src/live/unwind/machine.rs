//! Registers of this machine as the kernel samples them and as unwind tables number them.
//!
//! Sources: `arch/x86/include/uapi/asm/perf_regs.h` and `arch/arm64/include/uapi/asm/perf_regs.h` of Linux 6.18; the System V ABI of AMD64, table
//! 3.36; DWARF for the Arm 64-bit architecture, table 1. On other machines stacks are followed by frame pointers alone.

/// Which registers are sampled, bits of `PERF_REG_*`; none on a machine whose tables are not read.
pub(in crate::live) const SAMPLED: u64 = native::SAMPLED;
/// Registers that tables know, by their numbers in DWARF.
pub(super) const COUNT: usize = native::COUNT;
/// Stack pointer, frame pointer, place in code.
pub(super) const SP: usize = native::SP;
pub(super) const FP: usize = native::FP;
pub(super) const PC: usize = native::PC;

/// Values by number in DWARF; unknown ones are `None`.
pub(in crate::live) type Registers = [Option<u64>; COUNT];

/// From the sampled values, which are in the order of their bits.
pub(in crate::live) fn registers(values: &[u64]) -> Option<Registers> {
    let mut registers = [None; COUNT];
    let values = values.get(..native::ORDER.len())?;
    for (number, value) in native::ORDER.iter().zip(values) {
        registers[*number] = Some(*value);
    }
    Some(registers)
}

/// A return address without the signature that the processor may keep in it.
pub(super) fn plain(address: u64) -> u64 {
    address & native::ADDRESS
}

#[cfg(target_arch = "x86_64")]
mod native {
    /// AX to IP, R8 to R15.
    pub(super) const SAMPLED: u64 = 0xff_01ff;
    pub(super) const ORDER: [usize; 17] =
        [0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15];
    pub(super) const COUNT: usize = 17;
    pub(super) const SP: usize = 7;
    pub(super) const FP: usize = 6;
    pub(super) const PC: usize = 16;
    pub(super) const ADDRESS: u64 = u64::MAX;
}

#[cfg(target_arch = "aarch64")]
mod native {
    /// X0 to X30, SP, PC: numbered alike.
    pub(super) const SAMPLED: u64 = (1 << 33) - 1;
    pub(super) const ORDER: [usize; 33] = {
        let mut order = [0; 33];
        let mut number = 0;
        while number < order.len() {
            order[number] = number;
            number += 1;
        }
        order
    };
    pub(super) const COUNT: usize = 33;
    pub(super) const SP: usize = 31;
    pub(super) const FP: usize = 29;
    pub(super) const PC: usize = 32;
    /// Addresses of processes have at most 52 bits; signatures of pointers are above them.
    pub(super) const ADDRESS: u64 = (1 << 52) - 1;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native {
    pub(super) const SAMPLED: u64 = 0;
    pub(super) const ORDER: [usize; 0] = [];
    pub(super) const COUNT: usize = 3;
    pub(super) const SP: usize = 0;
    pub(super) const FP: usize = 1;
    pub(super) const PC: usize = 2;
    pub(super) const ADDRESS: u64 = u64::MAX;
}
