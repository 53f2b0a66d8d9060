//! A tiny assembler for eBPF, so that no compiler is needed to build or run.
//!
//! One method per instruction; jumps go to labels that are placed later, so a program reads from
//! top to bottom like its listing. Encoding: Documentation/bpf/standardization/instruction-set.rst (RFC 9669).

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// One instruction as the kernel reads it (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    code: u8,
    /// Destination in the low four bits, source in the high four.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register. R0 returns, R1-R5 are arguments that a call destroys, R6 to R9 survive calls, R10 is the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reg {
    R0 = 0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    Frame = 10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// When a jump is taken; comparisons are unsigned.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum If {
    Equal = 0x10,
    Greater = 0x20,
    AnyBit = 0x40,
    NotEqual = 0x50,
    Less = 0xa0,
}

/// A place in the program that jumps name.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

const ALU64: u8 = 0x07;
const JMP: u8 = 0x05;
const FROM_REGISTER: u8 = 0x08;

/// A program being written.
#[derive(Debug, Default)]
pub struct Program {
    insns: Vec<Insn>,
    /// Instruction index of each label, once placed.
    labels: Vec<Option<usize>>,
    /// Jumps that wait for their label.
    jumps: Vec<(usize, Label)>,
}

impl Program {
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.insns.len());
    }

    /// `to = from`
    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.push(ALU64 | 0xb0 | FROM_REGISTER, to, Some(from), 0, 0);
    }

    /// `to = value`
    pub fn set(&mut self, to: Reg, value: i32) {
        self.push(ALU64 | 0xb0, to, None, 0, value);
    }

    /// `to += value`
    pub fn add(&mut self, to: Reg, value: i32) {
        self.push(ALU64, to, None, 0, value);
    }

    /// `to += from`
    pub fn add_register(&mut self, to: Reg, from: Reg) {
        self.push(ALU64 | FROM_REGISTER, to, Some(from), 0, 0);
    }

    /// `to -= from`
    pub fn subtract_register(&mut self, to: Reg, from: Reg) {
        self.push(ALU64 | 0x10 | FROM_REGISTER, to, Some(from), 0, 0);
    }

    /// `to >>= bits`, unsigned
    pub fn shift_right(&mut self, to: Reg, bits: i32) {
        self.push(ALU64 | 0x70, to, None, 0, bits);
    }

    /// `*(u64 *)(base + offset) += from`, whole for other CPUs
    pub fn add_shared(&mut self, base: Reg, offset: i16, from: Reg) {
        self.push(0xdb, base, Some(from), offset, 0);
    }

    /// `to /= value`, unsigned; `value` is not zero.
    pub fn divide(&mut self, to: Reg, value: i32) {
        self.push(ALU64 | 0x30, to, None, 0, value);
    }

    /// `to *= value`
    pub fn multiply(&mut self, to: Reg, value: i32) {
        self.push(ALU64 | 0x20, to, None, 0, value);
    }

    /// The low 16 bits of `to`, network order to host order, the rest zero.
    pub fn half_from_network(&mut self, to: Reg) {
        self.push(0xdc, to, None, 0, 16);
    }

    /// `to = *(base + offset)`
    pub fn load(&mut self, width: Width, to: Reg, base: Reg, offset: i16) {
        self.push(0x61 | width as u8, to, Some(base), offset, 0);
    }

    /// `*(base + offset) = from`
    pub fn store(&mut self, width: Width, base: Reg, offset: i16, from: Reg) {
        self.push(0x63 | width as u8, base, Some(from), offset, 0);
    }

    /// `*(base + offset) = value`
    pub fn store_value(&mut self, width: Width, base: Reg, offset: i16, value: i32) {
        self.push(0x62 | width as u8, base, None, offset, value);
    }

    /// Jumps to `label` if `left` stands so to `right`. Values are compared as 64 bits, `right` sign-extended.
    pub fn jump_if(&mut self, left: Reg, condition: If, right: i32, label: Label) {
        self.jumps.push((self.insns.len(), label));
        self.push(JMP | condition as u8, left, None, 0, right);
    }

    /// As [`Self::jump_if`] on the low 32 bits alone, for values with the top bit set.
    pub fn jump_if_word(&mut self, left: Reg, condition: If, right: u32, label: Label) {
        self.jumps.push((self.insns.len(), label));
        self.push(0x06 | condition as u8, left, None, 0, right.cast_signed());
    }

    pub fn jump_if_register(&mut self, left: Reg, condition: If, right: Reg, label: Label) {
        self.jumps.push((self.insns.len(), label));
        self.push(
            JMP | condition as u8 | FROM_REGISTER,
            left,
            Some(right),
            0,
            0,
        );
    }

    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.insns.len(), label));
        self.push(JMP, Reg::R0, None, 0, 0);
    }

    /// Calls a kernel helper by its number in `enum bpf_func_id`.
    pub fn call(&mut self, helper: i32) {
        self.push(JMP | 0x80, Reg::R0, None, 0, helper);
    }

    pub fn exit(&mut self) {
        self.push(JMP | 0x90, Reg::R0, None, 0, 0);
    }

    /// `to = &map`, two slots wide; the kernel replaces the descriptor by the map's address at load.
    pub fn load_map(&mut self, to: Reg, map: BorrowedFd<'_>) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.load_of_map(to, PSEUDO_MAP_FD, map);
    }

    fn load_of_map(&mut self, to: Reg, what: u8, map: BorrowedFd<'_>) {
        self.insns.push(Insn {
            code: 0x18,
            registers: to as u8 | what << 4,
            offset: 0,
            immediate: map.as_raw_fd(),
        });
        self.insns.push(Insn {
            code: 0,
            registers: 0,
            offset: 0,
            immediate: 0,
        });
    }

    /// `to = &map[0]` of an array, two slots wide.
    pub fn load_value(&mut self, to: Reg, map: BorrowedFd<'_>) {
        const PSEUDO_MAP_VALUE: u8 = 2;
        self.load_of_map(to, PSEUDO_MAP_VALUE, map);
    }

    /// The finished program, every jump resolved.
    pub fn finish(mut self) -> Vec<Insn> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("every label that is jumped to is placed");
            let distance = target.cast_signed() - at.cast_signed() - 1;
            self.insns[at].offset =
                i16::try_from(distance).expect("programs here are far below 32768 instructions");
        }
        self.insns
    }

    fn push(
        &mut self,
        code: u8,
        destination: Reg,
        source: Option<Reg>,
        offset: i16,
        immediate: i32,
    ) {
        self.insns.push(Insn {
            code,
            registers: destination as u8 | source.map_or(0, |reg| reg as u8) << 4,
            offset,
            immediate,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_encoded_as_the_kernel_reads_it() {
        let mut program = Program::default();
        program.copy(Reg::R6, Reg::R1);
        program.load(Width::Word, Reg::R2, Reg::R6, 4);
        program.set(Reg::R0, 2);
        program.exit();
        let expected = [
            (0xbf, 0x16, 0, 0),
            (0x61, 0x62, 4, 0),
            (0xb7, 0, 0, 2),
            (0x95, 0, 0, 0),
        ];
        let encoded: Vec<_> = program
            .finish()
            .iter()
            .map(|insn| (insn.code, insn.registers, insn.offset, insn.immediate))
            .collect();
        assert_eq!(encoded, expected);
        assert_eq!(size_of::<Insn>(), 8);
    }

    #[test]
    fn a_jump_counts_from_the_instruction_after_it() {
        let mut program = Program::default();
        let (top, end) = (program.label(), program.label());
        program.place(top);
        program.jump_if(Reg::R1, If::NotEqual, 7, end);
        program.jump(top);
        program.place(end);
        program.exit();
        let insns = program.finish();
        assert_eq!((insns[0].offset, insns[1].offset), (1, -2));
    }
}
