//! Unwind tables of ELF files: how the registers of a caller follow from those of the function that it called.
//!
//! `.eh_frame` is in nearly every program, since exceptions need it and compilers write it for C too; its index `.eh_frame_hdr` is searched where
//! there is one. `.debug_frame` is read too, for what that does not cover. `gimli` parses them. What a file says of itself is not believed: sections have a limit, and
//! whatever is damaged has no rules.
//! Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, section 10.6.

use std::fs::File;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice,
    LittleEndian, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};
use object::read::elf::ElfFile64;
use object::{
    CompressedData, CompressionFormat, Endianness, Object as _, ObjectSection as _,
    ObjectSegment as _, ReadCache, ReadRef,
};

use super::super::elf::Limited;
use super::machine::COUNT;

/// The longest section; browsers have 20 MB.
const LONGEST: u64 = 256 << 20;
/// Functions of a file without an index.
const MOST_FUNCTIONS: usize = 4 << 20;
/// The longest expression; the longest of the C library has 40 bytes.
const LONGEST_EXPRESSION: usize = 4096;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The tables of a file.
#[derive(Debug, Default)]
pub(in crate::live) struct Tables {
    /// Offset in the file, length, address of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    /// `.eh_frame` first. Programs of Go with parts in C have both, each for its parts.
    sections: Vec<Section>,
}

/// A section with tables.
#[derive(Debug, Default)]
struct Section {
    bases: BaseAddresses,
    frames: Vec<u8>,
    is_debug: bool,
    index: Index,
}

/// Where the functions are in the table.
#[derive(Debug, Default)]
enum Index {
    /// `.eh_frame_hdr`.
    Section(Vec<u8>),
    /// First address and place in the table, in order.
    Made(Vec<(u64, usize)>),
    #[default]
    None,
}

/// How the registers of the caller are found, at one place in code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Where the frame of the caller begins.
    pub(super) frame: Frame,
    /// By number in DWARF; those without a rule keep their value.
    pub(super) registers: Box<[(usize, Register)]>,
    /// The register that is the return address.
    pub(super) returns_by: usize,
    /// The caller was interrupted by a signal and has called nothing.
    pub(super) is_signal: bool,
    pub(super) encoding: Encoding,
    /// Bytes from the beginning of the function.
    pub(super) from_begin: u64,
}

/// Where the frame of the caller begins (the canonical frame address).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Register(usize, i64),
    Expression(Box<[u8]>),
}

/// Where the value of a register is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Register {
    Unknown,
    Same,
    /// In memory, so far from the frame.
    Saved(i64),
    /// The frame's address and so much.
    Frame(i64),
    Other(usize),
    SavedAt(Box<[u8]>),
    Value(Box<[u8]>),
    Constant(u64),
}

impl Tables {
    /// Of a file; nothing if it has none that this machine uses.
    pub(in crate::live) fn of_file(file: &File) -> Option<Self> {
        let cache = ReadCache::new(file);
        Self::of(Limited(&cache))
    }

    /// The same of bytes.
    pub(in crate::live) fn of<'d>(data: impl ReadRef<'d>) -> Option<Self> {
        let elf = ElfFile64::<Endianness, _>::parse(data).ok()?;
        if elf.endianness() != Endianness::Little {
            return None;
        }
        let bytes = |name: &str| {
            let bytes = plain(&elf.section_by_name(name)?.compressed_data().ok()?)?;
            (!bytes.is_empty()).then_some(bytes)
        };
        let begin = |name| elf.section_by_name(name).map_or(0, |at| at.address());
        let segments = elf.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        let mut tables = Self {
            segments: segments.collect(),
            sections: Vec::new(),
        };
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(begin(".eh_frame_hdr"))
            .set_eh_frame(begin(".eh_frame"))
            .set_text(begin(".text"))
            .set_got(begin(".got"));
        for is_debug in [false, true] {
            let name = if is_debug {
                ".debug_frame"
            } else {
                ".eh_frame"
            };
            let Some(frames) = bytes(name) else {
                continue;
            };
            let index = (!is_debug).then(|| bytes(".eh_frame_hdr")).flatten();
            let mut section = Section {
                bases: bases.clone(),
                frames,
                is_debug,
                index: index.map_or(Index::None, Index::Section),
            };
            section.index();
            tables.sections.push(section);
        }
        (!tables.sections.is_empty()).then_some(tables)
    }

    /// Tables in memory; the index may be missing.
    #[cfg(test)]
    pub(super) fn of_sections(frames: &[u8], address: u64, index: Option<(&[u8], u64)>) -> Self {
        let mut section = Section {
            bases: BaseAddresses::default()
                .set_eh_frame(address)
                .set_eh_frame_hdr(index.map_or(0, |(_, address)| address)),
            frames: frames.to_vec(),
            is_debug: false,
            index: index.map_or(Index::None, |(bytes, _)| Index::Section(bytes.to_vec())),
        };
        section.index();
        Self {
            segments: vec![(0, u64::MAX, 0)],
            sections: vec![section],
        }
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        self.sections.iter().map(Section::size).sum()
    }

    /// The rule at an offset of the file; nothing if no table covers it.
    pub(super) fn rule(&self, offset: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let (from, _, address) = self
            .segments
            .iter()
            .find(|(from, length, _)| offset >= *from && offset - from < *length)?;
        let address = (offset - from).checked_add(*address)?;
        self.sections
            .iter()
            .find_map(|section| section.rule(address, context))
    }
}

impl Section {
    fn size(&self) -> usize {
        let index = match &self.index {
            Index::Section(bytes) => bytes.len(),
            Index::Made(functions) => size_of_val(functions.as_slice()),
            Index::None => 0,
        };
        self.frames.len() + index
    }

    /// Makes an index if there is none that can be searched.
    fn index(&mut self) {
        if let Index::Section(bytes) = &self.index {
            let index = EhFrameHdr::new(bytes, LittleEndian).parse(&self.bases, 8);
            if index.is_ok_and(|index| index.table().is_some()) {
                return;
            }
        }
        let mut functions = if self.is_debug {
            functions(&self.debug_frame(), &self.bases)
        } else {
            functions(&self.eh_frame(), &self.bases)
        };
        functions.sort_unstable();
        self.index = Index::Made(functions);
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.frames, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(VENDOR);
        section
    }

    fn debug_frame(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.frames, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(VENDOR);
        section
    }

    /// The rule at an address of the file.
    fn rule(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let at = match &self.index {
            Index::Section(bytes) => {
                let index = EhFrameHdr::new(bytes, LittleEndian);
                let index = index.parse(&self.bases, 8).ok()?;
                let table = index.table()?;
                let found = table.lookup(address, &self.bases).ok()?;
                table.pointer_to_offset(found).ok()?.0
            }
            Index::Made(functions) => {
                let after = functions.partition_point(|(begin, _)| *begin <= address);
                functions.get(after.checked_sub(1)?)?.1
            }
            Index::None => return None,
        };
        if self.is_debug {
            rule(&self.debug_frame(), &self.bases, at, address, context)
        } else {
            rule(&self.eh_frame(), &self.bases, at, address, context)
        }
    }
}

/// The bytes of a section; Go compresses its own.
fn plain(section: &CompressedData<'_>) -> Option<Vec<u8>> {
    let length = section.uncompressed_size;
    if length > LONGEST {
        return None;
    }
    match section.format {
        CompressionFormat::None => Some(section.data.to_vec()),
        CompressionFormat::Zlib => {
            let mut bytes = Vec::new();
            let mut plain = ZlibDecoder::new(section.data).take(length);
            plain.read_to_end(&mut bytes).ok()?;
            (bytes.len() as u64 == length).then_some(bytes)
        }
        _ => None,
    }
}

/// Whose private instructions are understood.
const VENDOR: gimli::Vendor = if cfg!(target_arch = "aarch64") {
    gimli::Vendor::AArch64
} else {
    gimli::Vendor::Default
};

/// First addresses of all functions that can be read.
fn functions<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
) -> Vec<(u64, usize)> {
    let mut functions = Vec::new();
    let mut entries = section.entries(bases);
    // The first entry that is damaged ends it: where the next begins is not known.
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(function) = entry
            && let Ok(function) = function.parse(S::cie_from_offset)
        {
            functions.push((function.initial_address(), function.offset()));
            if functions.len() >= MOST_FUNCTIONS {
                break;
            }
        }
    }
    functions
}

fn rule<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    at: usize,
    address: u64,
    context: &mut UnwindContext<usize>,
) -> Option<Rule> {
    let function = section
        .fde_from_offset(bases, at.into(), S::cie_from_offset)
        .ok()?;
    if !function.contains(address) {
        return None;
    }
    let expression = |expression: &UnwindExpression<usize>| {
        let bytes = expression.get(section).ok()?.0.slice();
        (bytes.len() <= LONGEST_EXPRESSION).then(|| Box::from(bytes))
    };
    let row = function
        .unwind_info_for_address(section, bases, context, address)
        .ok()?;
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            Frame::Register(usize::from(register.0), *offset)
        }
        CfaRule::Expression(of) => Frame::Expression(expression(of)?),
    };
    let registers = row.registers().filter_map(|(register, rule)| {
        let number = usize::from(register.0);
        // Vector registers hold no addresses.
        if number >= COUNT {
            return None;
        }
        let rule = match rule {
            RegisterRule::SameValue => Register::Same,
            RegisterRule::Offset(offset) => Register::Saved(*offset),
            RegisterRule::ValOffset(offset) => Register::Frame(*offset),
            RegisterRule::Register(other) => Register::Other(usize::from(other.0)),
            RegisterRule::Expression(of) => {
                expression(of).map_or(Register::Unknown, Register::SavedAt)
            }
            RegisterRule::ValExpression(of) => {
                expression(of).map_or(Register::Unknown, Register::Value)
            }
            RegisterRule::Constant(value) => Register::Constant(*value),
            _ => Register::Unknown,
        };
        Some((number, rule))
    });
    Some(Rule {
        frame,
        registers: registers.collect(),
        returns_by: usize::from(function.cie().return_address_register().0),
        is_signal: function.is_signal_trampoline(),
        encoding: function.cie().encoding(),
        from_begin: address.saturating_sub(function.initial_address()),
    })
}
