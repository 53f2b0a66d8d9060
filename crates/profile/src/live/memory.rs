//! What the addresses of processes are: a place in a file that is mapped there, or memory with code that was made at run time.
//!
//! Mappings are read from `/proc/PID/maps` once, and from the kernel's records later. A child has those of its parent until it
//! executes a program.

use std::collections::{BTreeMap, HashMap};

use super::records::Mapped;

/// Processes whose mappings are kept; addresses of others stay unknown.
const MOST_PROCESSES: usize = 1 << 14;
/// Mappings of one process; the kernel allows 65530 (`vm.max_map_count`) unless told otherwise.
const MOST_MAPPINGS: usize = 1 << 16;
/// Different files.
const MOST_FILES: usize = 1 << 16;

/// The kernel's own code in every process.
pub(super) const VDSO: &str = "[vdso]";

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// An address of the kernel.
    Kernel(u64),
    /// An offset in a mapped file.
    File { file: u32, offset: u64 },
    /// A function of the kernel of which only the name is known, by its number.
    Named(u32),
    /// An address in no file.
    Memory { process: u32, address: u64 },
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// As the process sees it.
    pub(super) path: String,
    /// A process that mapped it, and where: `/proc/PID/map_files/BEGIN-END` is this very file.
    pub(super) process: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// Mappings of processes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    processes: HashMap<u32, Mappings>,
    pub(super) objects: Vec<Object>,
    numbers: HashMap<(String, u64), u32>,
}

/// By the first address.
type Mappings = BTreeMap<u64, Mapping>;

#[derive(Clone, Copy, Debug)]
struct Mapping {
    end: u64,
    offset: u64,
    /// `None` for memory without a file.
    file: Option<u32>,
}

impl Memory {
    /// Learns the mappings of a process from its `/proc/PID/maps`.
    pub(super) fn read(&mut self, process: u32, maps: &str) {
        for mapped in maps.lines().filter_map(|line| line_of(process, line)) {
            self.map(&mapped);
        }
    }

    /// A process mapped code.
    pub(super) fn map(&mut self, mapped: &Mapped) {
        if mapped.begin >= mapped.end
            || !self.processes.contains_key(&mapped.process)
                && self.processes.len() >= MOST_PROCESSES
        {
            return;
        }
        let file = self.object(mapped);
        let mappings = self.processes.entry(mapped.process).or_default();
        cut_out(mappings, mapped.begin, mapped.end);
        if mappings.len() < MOST_MAPPINGS {
            let mapping = Mapping {
                end: mapped.end,
                offset: if mapped.path == VDSO {
                    0
                } else {
                    mapped.offset
                },
                file,
            };
            mappings.insert(mapped.begin, mapping);
        }
    }

    fn object(&mut self, mapped: &Mapped) -> Option<u32> {
        let is_file = mapped.path.starts_with('/') && !mapped.path.starts_with("//");
        // Shared memory without a name holds code that was made at run time: `memfd:` of a JIT compiler.
        if !is_file && mapped.path != VDSO || mapped.path.starts_with("/memfd:") {
            return None;
        }
        let key = (mapped.path.clone(), mapped.inode);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.objects.len() >= MOST_FILES {
            return None;
        }
        let number = self.objects.len() as u32;
        self.objects.push(Object {
            path: mapped.path.clone(),
            process: mapped.process,
            begin: mapped.begin,
            end: mapped.end,
        });
        self.numbers.insert(key, number);
        Some(number)
    }

    /// A process began as a copy of its parent.
    pub(super) fn fork(&mut self, process: u32, parent: u32) {
        if process == parent || self.processes.len() >= MOST_PROCESSES {
            return;
        }
        let mappings = self.processes.get(&parent).cloned().unwrap_or_default();
        self.processes.insert(process, mappings);
    }

    /// A process runs another program: all that it had mapped is gone.
    pub(super) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    fn mapping(&self, process: u32, address: u64) -> Option<(u64, Mapping)> {
        let (begin, mapping) = self
            .processes
            .get(&process)?
            .range(..=address)
            .next_back()?;
        (address < mapping.end).then_some((*begin, *mapping))
    }

    /// Whether a process may execute what is at an address.
    pub(super) fn is_code(&self, process: u32, address: u64) -> bool {
        self.mapping(process, address).is_some()
    }

    /// What is at an address of a process.
    pub(super) fn place(&self, process: u32, address: u64) -> Place {
        match self.mapping(process, address) {
            Some((
                begin,
                Mapping {
                    offset,
                    file: Some(file),
                    ..
                },
            )) => Place::File {
                file,
                offset: (address - begin).saturating_add(offset),
            },
            _ => Place::Memory { process, address },
        }
    }
}

/// Removes what lies between two addresses; a mapping that reaches beyond them keeps that part.
fn cut_out(mappings: &mut Mappings, begin: u64, end: u64) {
    let before = mappings.range(..begin).next_back();
    if let Some((at, old)) = before.map(|(at, old)| (*at, *old))
        && old.end > begin
    {
        if let Some(old) = mappings.get_mut(&at) {
            old.end = begin;
        }
        if old.end > end {
            let offset = old.offset.saturating_add(end - at);
            mappings.insert(end, Mapping { offset, ..old });
        }
    }
    while let Some((at, old)) = mappings
        .range(begin..end)
        .next()
        .map(|(at, old)| (*at, *old))
    {
        mappings.remove(&at);
        if old.end > end {
            let offset = old.offset.saturating_add(end - at);
            mappings.insert(end, Mapping { offset, ..old });
        }
    }
}

/// A line of `/proc/PID/maps` that maps code: `BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH`.
fn line_of(process: u32, line: &str) -> Option<Mapped> {
    let mut rest = line;
    let mut word = || {
        let (word, others) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
        rest = others;
        word
    };
    let (begin, end) = word().split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    if !word().contains('x') {
        return None;
    }
    let offset = number(word())?;
    word();
    let inode = word().trim().parse().ok()?;
    Some(Mapped {
        process,
        begin: number(begin)?,
        end: number(end)?,
        offset,
        inode,
        path: rest.trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0001000 r--p 00000000 fe:00 77                         /usr/bin/a b
55d0c0001000-55d0c0003000 r-xp 00001000 fe:00 77                         /usr/bin/a b
7f0000000000-7f0000010000 rwxp 00000000 00:00 0 
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn an_address_is_in_a_file_or_in_memory_of_its_process() {
        let mut memory = Memory::default();
        memory.read(7, MAPS);
        memory.fork(8, 7);
        for process in [7, 8] {
            let place = memory.place(process, 0x55d0_c000_1234);
            let offset = 0x1234;
            assert_eq!(place, Place::File { file: 0, offset });
        }
        assert_eq!(memory.objects[0].path, "/usr/bin/a b");
        assert_eq!(memory.objects[1].path, VDSO);
        for address in [0x7f00_0000_0010, 5] {
            let process = 7;
            assert_eq!(memory.place(7, address), Place::Memory { process, address });
        }
        memory.clear(8);
        assert!(matches!(
            memory.place(8, 0x55d0_c000_1234),
            Place::Memory { .. }
        ));
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_a_part_of_another() {
        let mut memory = Memory::default();
        let map = |begin, end, path: &str| Mapped {
            process: 1,
            begin,
            end,
            path: path.to_owned(),
            ..Mapped::default()
        };
        memory.map(&map(100, 200, "/a"));
        memory.map(&map(120, 150, "/b"));
        let at = |address| memory.place(1, address);
        assert_eq!(
            at(110),
            Place::File {
                file: 0,
                offset: 10
            }
        );
        assert_eq!(at(120), Place::File { file: 1, offset: 0 });
        assert_eq!(
            at(150),
            Place::File {
                file: 0,
                offset: 50
            }
        );
        assert!(matches!(at(200), Place::Memory { .. }));
    }

    proptest! {
        #[test]
        fn mappings_never_overlap(maps in proptest::collection::vec((0_u64..60, 0_u64..60), 0..30), text in "[ -~]{0,60}") {
            let mut memory = Memory::default();
            memory.read(1, &text);
            for (begin, length) in maps {
                memory.map(&Mapped { process: 1, begin, end: begin + length, path: "/a".to_owned(), ..Mapped::default() });
            }
            let mut last = 0;
            for (begin, mapping) in memory.processes.get(&1).into_iter().flatten() {
                prop_assert!(last <= *begin && *begin < mapping.end);
                last = mapping.end;
            }
        }
    }
}
