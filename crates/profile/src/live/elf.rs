//! Names of functions in ELF files, for the offsets that are asked for.
//!
//! Symbols are passed over once and not kept: a library with a million of them costs their table and no more. What a file says of itself is
//! not believed: reads end at the end of the file, tables have a limit, and whatever cannot be read has no names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;

use object::read::elf::{ElfFile, ElfFile32, ElfFile64, FileHeader};
use object::{
    FileKind, Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache, ReadRef, SymbolKind,
};

/// The largest file whose tables are read; the largest debug files of browsers have half of it.
const LARGEST: u64 = 8 << 30;
/// The longest name; templates of C++ have kilobytes. A short one of an ill-willed file can stand for gigabytes.
const LONGEST: usize = 16 << 10;

/// Names by offset in the file.
pub(super) type Names = BTreeMap<u64, String>;

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Names of functions at offsets that were asked for.
    pub(super) names: Names,
    /// Whether the file has all its symbols, not only those that it exports.
    pub(super) is_whole: bool,
    /// Which of the debug files is its own.
    pub(super) build_id: Option<Vec<u8>>,
}

/// The functions at these offsets of a file.
pub(super) fn read(file: &File, offsets: &BTreeSet<u64>) -> Option<Read> {
    if file.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let cache = ReadCache::new(file);
    read_data(Limited(&cache), offsets)
}

/// A file of which no part is read that is longer than any table: a sparse file can claim one of any length.
#[derive(Clone, Copy)]
pub(super) struct Limited<'d>(pub(super) &'d ReadCache<&'d File>);

/// Ten million symbols.
const LONGEST_PART: u64 = 256 << 20;

impl<'d> ReadRef<'d> for Limited<'d> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        if size > LONGEST_PART {
            return Err(());
        }
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}

/// The same of bytes or a cache of them.
pub(super) fn read_data<'d, R: ReadRef<'d>>(data: R, offsets: &BTreeSet<u64>) -> Option<Read> {
    match FileKind::parse(data).ok()? {
        FileKind::Elf64 => {
            let elf = ElfFile64::<object::Endianness, R>::parse(data).ok()?;
            Some(of_elf(&elf, offsets))
        }
        FileKind::Elf32 => {
            let elf = ElfFile32::<object::Endianness, R>::parse(data).ok()?;
            Some(of_elf(&elf, offsets))
        }
        _ => None,
    }
}

fn of_elf<'d, H: FileHeader, R: ReadRef<'d>>(
    elf: &ElfFile<'d, H, R>,
    offsets: &BTreeSet<u64>,
) -> Read {
    let addresses = addresses(elf, offsets);
    let names = functions(elf, &addresses.keys().copied().collect());
    let names = names
        .into_iter()
        .filter_map(|(address, name)| Some((*addresses.get(&address)?, name)));
    Read {
        names: names.collect(),
        is_whole: elf.symbol_table().is_some(),
        build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
    }
}

/// Names from a separate file with symbols, which has the addresses of `file` but not its offsets.
pub(super) fn read_apart(
    file: &File,
    debug: &File,
    build_id: &[u8],
    offsets: &BTreeSet<u64>,
) -> Option<Names> {
    if debug.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let (cache, symbols) = (ReadCache::new(file), ReadCache::new(debug));
    let elf = object::File::parse(Limited(&cache)).ok()?;
    let debug = object::File::parse(Limited(&symbols)).ok()?;
    if debug.build_id().ok().flatten() != Some(build_id) {
        return None;
    }
    let addresses = addresses(&elf, offsets);
    let names = functions(&debug, &addresses.keys().copied().collect());
    Some(
        names
            .into_iter()
            .filter_map(|(address, name)| Some((*addresses.get(&address)?, name)))
            .collect(),
    )
}

/// Addresses with the offsets that are loaded there.
fn addresses<'d>(elf: &impl object::Object<'d>, offsets: &BTreeSet<u64>) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for segment in elf.segments() {
        let (from, length) = segment.file_range();
        for offset in offsets.range(from..from.saturating_add(length)) {
            found.insert((offset - from).saturating_add(segment.address()), *offset);
        }
    }
    found
}

/// The best symbol for an address so far; without a name where the address is behind the end of the last.
struct Best {
    /// How good it is; more is better.
    rank: (bool, u64, bool, bool),
    name: String,
}

/// The functions at these addresses. Of several the one that begins last is taken: it is the innermost.
fn functions<'d>(elf: &impl object::Object<'d>, addresses: &BTreeSet<u64>) -> Names {
    let mut best: BTreeMap<u64, Best> = BTreeMap::new();
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let is_sized = symbol.size() > 0;
        let is_code = match symbol.kind() {
            SymbolKind::Text => true,
            // Code written in assembler has neither type nor size.
            SymbolKind::Label | SymbolKind::Unknown => !is_sized,
            _ => false,
        };
        if !is_code || symbol.is_undefined() || symbol.address() == 0 {
            continue;
        }
        let begin = symbol.address();
        let end = begin.saturating_add(symbol.size());
        let reach = end.max(begin.saturating_add(UNSIZED));
        for address in addresses.range(begin..reach) {
            // One without a size ends where the next begins, or where the next with a size ended.
            let contains = !is_sized || *address < end;
            let rank = (is_sized && contains, begin, contains, symbol.is_global());
            if best.get(address).is_some_and(|best| best.rank >= rank) {
                continue;
            }
            if !contains {
                let name = String::new();
                best.insert(*address, Best { rank, name });
                continue;
            }
            let Ok(name) = symbol.name_bytes() else {
                continue;
            };
            // Marks of code and data in Arm files; names without text.
            if name.is_empty() || name.starts_with(b"$") || name.len() > LONGEST {
                continue;
            }
            let name = demangled(&String::from_utf8_lossy(name));
            best.insert(*address, Best { rank, name });
        }
    }
    let named = best.into_iter().filter(|(_, best)| !best.name.is_empty());
    named.map(|(address, best)| (address, best.name)).collect()
}

/// How far a symbol without a size reaches at most.
const UNSIZED: u64 = 4096;

/// A name as it is in the source, without parameters and hashes.
pub(super) fn demangled(name: &str) -> String {
    // `memcpy@@GLIBC_2.14`
    let plain = name.split_once('@').map_or(name, |(plain, _)| plain);
    let plain = if plain.is_empty() { name } else { plain };
    if let Ok(rust) = rustc_demangle::try_demangle(plain) {
        return format!("{rust:#}");
    }
    if plain.starts_with("_Z") || plain.starts_with("__Z") {
        let options = cpp_demangle::DemangleOptions::new()
            .no_params()
            .no_return_type();
        // `_ZN1a1bEv.part.0`
        let (mangled, suffix) = plain.split_once('.').map_or((plain, ""), |(mangled, _)| {
            (mangled, &plain[mangled.len()..])
        });
        let mut text = Bounded(String::new());
        if let Ok(symbol) = cpp_demangle::Symbol::new(mangled.as_bytes())
            && symbol.structured_demangle(&mut text, &options).is_ok()
        {
            return text.0 + suffix;
        }
    }
    plain.to_owned()
}

/// A text that refuses to grow beyond the longest name.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        if self.0.len() + more.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_doubles_with_each_level_is_left_as_it_is() {
        // f<P<int, int>, P<P<int, int>, P<int, int>>, ..>: S_ is f, S0_ is P, and each level is the substitution after that of the one before.
        let mangled = |levels: u32| {
            let level = |number| {
                let before = char::from_digit(number, 36).unwrap().to_ascii_uppercase();
                format!("S0_IS{before}_S{before}_E")
            };
            let all: String = (1..levels).map(level).collect();
            format!("_Z1fI1PIiiE{all}EvT_")
        };
        let short = "f<P<int, int>, P<P<int, int>, P<int, int> > >";
        assert_eq!(demangled(&mangled(2)), short);
        let long = mangled(12);
        assert_eq!(demangled(&long), long);
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, name) in [
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                "core::fmt::Formatter::pad",
            ),
            ("_RNvCs15kBYyAo9fc_7mycrate3add", "mycrate::add"),
            ("_ZN4shop4Cart3addEi", "shop::Cart::add"),
            ("_ZN4shop4Cart3addEi.part.0", "shop::Cart::add.part.0"),
            ("_ZSt4sortIPiEvT_S1_", "std::sort<int*>"),
            ("_Zgarbage", "_Zgarbage"),
            ("runtime.mallocgc", "runtime.mallocgc"),
            ("@", "@"),
        ] {
            assert_eq!(demangled(mangled), name, "{mangled}");
        }
    }

    fn own_program() -> Vec<u8> {
        rungwise_host::files::read("/proc/self/exe".as_ref()).unwrap()
    }

    /// Offset of a function of this program in its file.
    fn own_offset() -> u64 {
        let address = own_offset as fn() -> u64 as usize as u64;
        let maps = rungwise_host::files::read("/proc/self/maps".as_ref()).unwrap();
        let mut memory = super::super::memory::Memory::default();
        memory.read(1, &String::from_utf8(maps).unwrap());
        match memory.place(1, address) {
            super::super::memory::Place::File { offset, .. } => offset,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_function_of_this_program_has_its_name_at_each_of_its_bytes() {
        let at = own_offset();
        let read = read_data(&*own_program(), &[at, at + 3].into()).unwrap();
        let names: Vec<&str> = read.names.values().map(String::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(
            names.iter().all(|name| name.ends_with("own_offset")),
            "{names:?}"
        );
        assert!(read.is_whole);
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_anywhere_has_fewer_names_and_breaks_nothing() {
        let whole = own_program();
        let offsets = [own_offset()].into();
        for part in 0..64 {
            let _ = read_data(&whole[..whole.len() / 64 * part], &offsets);
        }
        let mut begin = whole[..4096].to_vec();
        for at in 0..256 {
            let old = std::mem::replace(&mut begin[at], 0xff);
            let _ = read_data(&*begin, &offsets);
            begin[at] = old;
        }
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name in "(_Z|_R|_ZN)?[ -~é]{0,40}") {
            let _ = demangled(&name);
        }

        #[test]
        fn no_bytes_make_it_panic(tail: Vec<u8>) {
            let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
            bytes.extend(tail);
            let _ = read_data(&*bytes, &[0, 64].into());
        }
    }
}
