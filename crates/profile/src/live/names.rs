//! Names for places: of the kernel, of ELF files, of code that was made at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rungwise_host::files;
use rungwise_model::profile::FrameKind;

use super::elf;
use super::jit::Code;
use super::memory::{Memory, Object, Place, VDSO};
use super::table::Table;
use super::unwind::Tables;
use crate::symbols;

/// A frame with its name.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) kind: FrameKind,
    /// Whether the function is known.
    pub(super) is_known: bool,
}

/// Names of all places.
pub(super) struct Names {
    kernel: Option<rungwise_formats::kallsyms::Names>,
    files: BTreeMap<u32, elf::Names>,
    code: BTreeMap<u32, Code>,
}

impl Names {
    /// Looks all of them up. `root` is the root folder of the process, kept open: it may have ended.
    pub(super) fn resolve(
        places: &[Place],
        memory: &Memory,
        root: Option<&File>,
        code: BTreeMap<u32, Code>,
        notes: &mut Vec<String>,
    ) -> Self {
        let kernel = places.iter().filter_map(|place| match place {
            Place::Kernel(address) => Some(*address),
            _ => None,
        });
        let kernel = symbols::check().and_then(|()| symbols::names(kernel));
        let kernel = kernel
            .map_err(|error| notes.push(format!("frames of the kernel are unknown: {error}")))
            .ok();
        Self {
            kernel,
            code,
            ..Self::of_files(places, memory, root)
        }
    }

    /// Looks up those in files alone.
    pub(super) fn of_files(places: &[Place], memory: &Memory, root: Option<&File>) -> Self {
        let mut wanted: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for place in places {
            if let Place::File { file, offset } = place {
                wanted.entry(*file).or_default().insert(*offset);
            }
        }
        let files = wanted.into_iter().filter_map(|(file, offsets)| {
            let object = memory.objects.get(file as usize)?;
            Some((file, of_object(object, root, &offsets)?))
        });
        Self {
            kernel: None,
            files: files.collect(),
            code: BTreeMap::new(),
        }
    }

    /// The frame of a place.
    pub(super) fn frame(&self, place: Place, memory: &Memory, table: &Table) -> Frame {
        let known = |name: &str, kind| Frame {
            name: name.to_owned(),
            kind,
            is_known: true,
        };
        let unknown = |name: String, kind| Frame {
            name,
            kind,
            is_known: false,
        };
        match place {
            Place::Kernel(address) => {
                let name = self
                    .kernel
                    .as_ref()
                    .and_then(|names| names.function(address));
                name.map_or_else(
                    || unknown("[kernel]".to_owned(), FrameKind::Kernel),
                    |name| known(name, FrameKind::Kernel),
                )
            }
            Place::Named(text) => known(table.text(text), FrameKind::Kernel),
            Place::File { file, offset } => {
                let name = self.files.get(&file).and_then(|names| names.get(&offset));
                name.map_or_else(
                    || {
                        unknown(
                            memory
                                .objects
                                .get(file as usize)
                                .map_or_else(String::new, stand_in),
                            FrameKind::Native,
                        )
                    },
                    |name| known(name, FrameKind::Native),
                )
            }
            Place::Memory { process, address } => {
                let function = self
                    .code
                    .get(&process)
                    .and_then(|code| code.function(address));
                match function {
                    Some((name, true)) => known(&name, FrameKind::Java),
                    Some((name, false)) => known(&name, FrameKind::Native),
                    None => unknown(UNKNOWN.to_owned(), FrameKind::Native),
                }
            }
        }
    }
}

/// Stands for an address in no file that nothing names.
pub(super) const UNKNOWN: &str = "[unknown]";

/// A file for a function of it that has no name: `[libc.so.6]`.
pub(super) fn stand_in(object: &Object) -> String {
    let path = object.path.trim_end_matches(DELETED);
    let name = path.rsplit('/').next().unwrap_or_default();
    format!("[{}]", name.trim_matches(['[', ']']))
}

/// What the kernel appends to the name of a file that has none any more.
const DELETED: &str = " (deleted)";

fn of_object(object: &Object, root: Option<&File>, offsets: &BTreeSet<u64>) -> Option<elf::Names> {
    if object.path == VDSO {
        return Some(elf::read_data(&*vdso()?, offsets)?.names);
    }
    let file = open(object, root)?;
    let mut read = elf::read(&file, offsets)?;
    if !read.is_whole
        && let Some(build_id) = &read.build_id
        && let Some(path) = debug_path(build_id)
    {
        let apart = [
            root.map(|root| files::below(root, &path)),
            Some(path.into()),
        ];
        let apart = apart.into_iter().flatten().find_map(|path| {
            let debug = files::open_plain(&path).ok()?;
            elf::read_apart(&file, &debug, build_id, offsets)
        });
        read.names.extend(apart.into_iter().flatten());
    }
    Some(read.names)
}

/// The unwind tables of a file.
pub(super) fn tables(object: &Object, root: Option<&File>) -> Option<Tables> {
    if object.path == VDSO {
        return Tables::of(&*vdso()?);
    }
    Tables::of_file(&open(object, root)?)
}

/// Where packages put the symbols of a file.
fn debug_path(build_id: &[u8]) -> Option<String> {
    use std::fmt::Write as _;
    let (first, rest) = build_id
        .split_first()
        .filter(|(_, rest)| !rest.is_empty())?;
    let mut path = format!("/usr/lib/debug/.build-id/{first:02x}/");
    for byte in rest {
        let _ = write!(path, "{byte:02x}");
    }
    Some(path + ".debug")
}

/// The mapped file itself while the process has it mapped, also if its name is gone; then the file of that name as the process saw it.
fn open(object: &Object, root: Option<&File>) -> Option<File> {
    let name = object.path.trim_end_matches(DELETED);
    let mapped = format!(
        "/proc/{}/map_files/{:x}-{:x}",
        object.process, object.begin, object.end
    );
    let target = files::link_target(mapped.as_ref()).unwrap_or_default();
    let target = target
        .to_str()
        .map(|target| target.trim_end_matches(DELETED));
    if target == Some(name)
        && let Ok(file) = files::open_plain(mapped.as_ref())
    {
        return Some(file);
    }
    if object.path.ends_with(DELETED) {
        return None;
    }
    let paths = [
        Some(format!("/proc/{}/root{name}", object.process).into()),
        root.map(|root| files::below(root, name)),
    ];
    paths
        .into_iter()
        .flatten()
        .find_map(|path| files::open_plain(&path).ok())
}

/// The kernel's code for clocks: the same bytes in every process of this machine, so those of this one.
fn vdso() -> Option<Vec<u8>> {
    /// Two pages on x86-64.
    const LARGEST: u64 = 1 << 20;
    let maps = files::read("/proc/self/maps".as_ref()).ok()?;
    let mut memory = Memory::default();
    memory.read(0, &String::from_utf8_lossy(&maps));
    let object = memory.objects.iter().find(|object| object.path == VDSO)?;
    let length = object
        .end
        .checked_sub(object.begin)
        .filter(|length| *length <= LARGEST)?;
    let file = files::open("/proc/self/mem".as_ref()).ok()?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, object.begin).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_file_of_a_build_is_named_by_its_id() {
        let path = debug_path(&[0xab, 0x01, 0xef]).unwrap();
        assert_eq!(path, "/usr/lib/debug/.build-id/ab/01ef.debug");
        assert_eq!(debug_path(&[1]), None);
    }

    #[test]
    fn functions_of_the_vdso_have_names() {
        let bytes = vdso().unwrap();
        let all: BTreeSet<u64> = (0..bytes.len() as u64).step_by(16).collect();
        let names = elf::read_data(&*bytes, &all).unwrap().names;
        assert!(
            names.values().any(|name| name.contains("clock_gettime")),
            "{names:?}"
        );
    }

    #[test]
    fn a_file_stands_for_its_functions_without_names() {
        let object = |path: &str| Object {
            path: path.to_owned(),
            process: 1,
            begin: 0,
            end: 1,
        };
        assert_eq!(
            stand_in(&object("/usr/lib/libc.so.6 (deleted)")),
            "[libc.so.6]"
        );
        assert_eq!(stand_in(&object(VDSO)), "[vdso]");
    }
}
