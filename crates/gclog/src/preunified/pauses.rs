//! Pauses from their first bracket to the last word about them.
//!
//! `[GC` or `[Full GC` opens a pause, `, 0.0669610 secs]` closes the innermost thing that is open: a part such as
//! `[ParNew: ...` or the pause itself. Only that figure closes for certain: articles and mail lose brackets, and other
//! threads print theirs in between. A pause that is closed is *held*: CPU times, G1's details and the heap afterwards
//! are printed behind it, sometimes lines later.

use super::cursor::Figures;
use crate::event::{
    AREAS, Ages, Area, Areas, Change, Kind, Pause, Phase, References, Stamp, Troubles,
};
use crate::names::{Name, Names};

/// The young collection is the first thing that a remark does; a guess, a hundred times what the corpus shows.
const SCAVENGE_BEGINS_NS: u64 = 1_000_000_000;
/// Parts within parts.
const MOST_PARTS: usize = 16;
/// Phases of one pause; HotSpot prints some thirty.
const MOST_PHASES: usize = 128;
/// Kinds of references of one pause.
const MOST_REFERENCES: usize = 16;
/// Ages of one table; HotSpot has 15, and had 31 before JDK 6.
const MOST_AGES: usize = 64;

/// How the line of a pause begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// `[GC`.
    Gc,
    /// `[Full GC`.
    Full,
    /// `[GC pause`, of G1.
    G1,
    /// `[GC remark`, of G1.
    Remark,
    /// `[GC cleanup`, of G1.
    Cleanup,
    /// `[Pause ...`, of Shenandoah.
    Shenandoah,
}

/// Which pause of CMS it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `[1 CMS-initial-mark: `.
    Initial,
    /// `[1 CMS-remark: `.
    Final,
}

/// A pause that is put together. Boxed and used again, since it is large.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) pause: Pause,
    pub(super) head: Head,
    parts: Vec<Part>,
    /// To hold an age table, if one comes.
    ages: Vec<u64>,
    /// Collectors of the generations, in the order they were printed.
    young: Option<&'static str>,
    old: Option<&'static str>,
    pub(super) mark: Option<Mark>,
    /// Of G1: mixed, or partial as the first versions said.
    pub(super) mixed: Option<&'static str>,
    /// The heap was printed with one figure: initial mark or remark.
    pub(super) single: bool,
    /// There was a young collection within it.
    pub(super) held_one: bool,
    /// What `{Heap before GC` said.
    pub(super) heap_before: Areas,
    /// `Heap after GC` will come, as `{Heap before GC` did.
    pub(super) waits_for_heap: bool,
}

/// A bracket within a pause.
#[derive(Debug)]
struct Part {
    name: Name,
    area: Option<Area>,
    /// Phases before it: its own goes in front of those within it.
    phases: usize,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            pause: Pause {
                line: 0,
                began: Stamp::default(),
                id: None,
                name: Name::default(),
                kind: Kind::Other,
                cause: None,
                starts_cycle: false,
                duration_ns: None,
                nested: false,
                areas: Areas::default(),
                promoted: None,
                young_occupancy: None,
                cpu: None,
                phases: Vec::new(),
                ages: None,
                references: Vec::new(),
                troubles: Troubles::default(),
            },
            head: Head::Gc,
            parts: Vec::new(),
            ages: Vec::new(),
            young: None,
            old: None,
            mark: None,
            mixed: None,
            single: false,
            held_one: false,
            heap_before: Areas::default(),
            waits_for_heap: false,
        }
    }
}

impl Draft {
    /// Forgets everything, and keeps its lists to be filled again.
    pub(super) fn clear(&mut self) {
        let pause = &mut self.pause;
        pause.id = None;
        pause.kind = Kind::Other;
        pause.cause = None;
        pause.starts_cycle = false;
        pause.duration_ns = None;
        pause.nested = false;
        pause.areas = Areas::default();
        pause.promoted = None;
        pause.young_occupancy = None;
        pause.cpu = None;
        pause.phases.clear();
        pause.references.clear();
        pause.troubles = Troubles::default();
        if let Some(ages) = pause.ages.take() {
            self.ages = ages.bytes;
        }
        self.parts.clear();
        self.young = None;
        self.old = None;
        self.mark = None;
        self.mixed = None;
        self.single = false;
        self.held_one = false;
        if self.waits_for_heap {
            self.heap_before = Areas::default();
        }
        self.waits_for_heap = false;
    }

    /// It begins here.
    pub(super) fn begin(&mut self, head: Head, line: u64, began: Stamp) {
        self.head = head;
        self.pause.line = line;
        self.pause.began = began;
    }

    /// Nothing more about it comes, when it is closed.
    pub(super) fn is_complete(&self) -> bool {
        self.pause.cpu.is_some() && !self.waits_for_heap
    }

    /// Brackets without a figure in seconds may follow: G1's details.
    pub(super) fn is_of_g1(&self) -> bool {
        matches!(
            self.head,
            Head::G1 | Head::Full | Head::Remark | Head::Cleanup
        )
    }

    /// A collection that began then may lie within this pause: it is the remark of CMS, which has done nothing yet but
    /// print how full the young generation is. A remark that lost its end must not swallow what comes after it.
    pub(super) fn may_hold(&self, began: Stamp) -> bool {
        let waited = self
            .pause
            .began
            .uptime_ns
            .zip(began.uptime_ns)
            .map_or(0, |(remark, young)| young.abs_diff(remark));
        self.head == Head::Gc
            && self.pause.young_occupancy.is_some()
            && self.pause.phases.is_empty()
            && self.old.is_none()
            && !self.held_one
            && waited <= SCAVENGE_BEGINS_NS
    }

    /// A bracket opens.
    pub(super) fn open_part(&mut self, name: Name, area: Option<Area>) {
        if self.parts.len() < MOST_PARTS {
            self.parts.push(Part {
                name,
                area,
                phases: self.pause.phases.len(),
            });
        }
    }

    /// The collector of a generation was printed.
    pub(super) fn collects(&mut self, area: Area, collector: &'static str) {
        match area {
            Area::Young => self.young = Some(collector),
            Area::Old => self.old = Some(collector),
            _ => {}
        }
    }

    /// The old generation is collected right now.
    pub(super) fn is_in_old(&self) -> bool {
        self.parts
            .last()
            .is_some_and(|part| part.area == Some(Area::Old))
    }

    pub(super) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The innermost bracket closes without a duration.
    pub(super) fn close_part(&mut self) -> bool {
        self.parts.pop().is_some()
    }

    /// A duration closes the innermost bracket. False if that is the pause itself.
    pub(super) fn close_part_after(&mut self, duration_ns: u64) -> bool {
        let Some(part) = self.parts.pop() else {
            return false;
        };
        if self.pause.phases.len() < MOST_PHASES {
            let phase = Phase {
                name: part.name,
                depth: self.parts.len() as u8,
                duration_ns,
            };
            let at = part.phases.min(self.pause.phases.len());
            self.pause.phases.insert(at, phase);
        }
        true
    }

    /// Sizes belong to the innermost bracket, or to the whole heap.
    pub(super) fn figures(&mut self, figures: Figures) {
        let innermost = self.parts.last().map(|part| part.area);
        if innermost.is_none() {
            self.single = figures.after.is_none();
        }
        if let Some(area) = innermost.unwrap_or(Some(Area::Heap)) {
            enter(self.pause.areas.at(area), figures);
        }
    }

    /// An age table begins.
    pub(super) fn begin_ages(
        &mut self,
        desired: Option<u64>,
        threshold: Option<u32>,
        max: Option<u64>,
    ) {
        let mut bytes = match self.pause.ages.take() {
            Some(ages) => ages.bytes,
            None => std::mem::take(&mut self.ages),
        };
        bytes.clear();
        self.pause.ages = Some(Ages {
            desired,
            threshold,
            max,
            bytes,
        });
    }

    /// A row of it; false if there is no table.
    pub(super) fn age(&mut self, age: u64, bytes: u64) -> bool {
        let at = usize::try_from(age)
            .ok()
            .and_then(|age| age.checked_sub(1))
            .filter(|at| *at < MOST_AGES);
        let (Some(at), Some(ages)) = (at, &mut self.pause.ages) else {
            return false;
        };
        if ages.bytes.len() <= at {
            ages.bytes.resize(at + 1, 0);
        }
        ages.bytes[at] = bytes;
        true
    }

    /// A kind of references was processed.
    pub(super) fn references(&mut self, references: References) {
        if self.pause.references.len() < MOST_REFERENCES {
            self.pause.references.push(references);
        }
    }

    /// The pause is over, or cut.
    pub(super) fn close(&mut self, names: &mut Names, duration_ns: Option<u64>, nested: bool) {
        let pause = &mut self.pause;
        pause.duration_ns = duration_ns;
        pause.nested = nested;
        let young = self.young.unwrap_or("GC");
        let (kind, name) = match self.head {
            Head::Shenandoah => (pause.kind, None),
            Head::Full => (Kind::Full, Some("Full GC")),
            Head::Remark => (Kind::Remark, Some("GC remark")),
            Head::Cleanup => (Kind::Cleanup, Some("GC cleanup")),
            Head::G1 => match (self.mixed, pause.starts_cycle) {
                (Some(mixed), _) => (Kind::Mixed, Some(mixed)),
                (None, false) => (Kind::Young, Some("GC pause (young)")),
                (None, true) => (Kind::Young, Some("GC pause (young) (initial-mark)")),
            },
            Head::Gc => match (self.mark, self.old) {
                (Some(Mark::Initial), _) => (Kind::Start, Some("CMS-initial-mark")),
                (Some(Mark::Final), _) => (Kind::Remark, Some("CMS-remark")),
                // Cut before it says so.
                (None, None) if pause.young_occupancy.is_some() => {
                    (Kind::Remark, Some("CMS-remark"))
                }
                (None, None) => (Kind::Young, Some(young)),
                (None, Some(old)) => {
                    pause.name = names.number(format!("{young}+{old}").as_bytes());
                    (Kind::Full, None)
                }
            },
        };
        pause.kind = kind;
        pause.starts_cycle |= kind == Kind::Start;
        if let Some(name) = name {
            pause.name = names.number(name.as_bytes());
        }
        if kind == Kind::Young && pause.promoted.is_none() {
            pause.promoted = promoted(&pause.areas);
        }
        if self.waits_for_heap {
            for area in AREAS {
                let printed = pause.areas.at(area);
                printed.before = printed.before.or(self.heap_before.get(area).before);
            }
        }
    }
}

/// Enters sizes. One figure is what was used throughout.
pub(super) fn enter(change: &mut Change, figures: Figures) {
    change.before = Some(figures.before);
    change.after = figures.after.or(Some(figures.before));
    change.capacity = figures.capacity;
}

/// What left the young generation and did not leave the heap. The JVM prints KiB, cut, so that this is right to 2 KiB.
fn promoted(areas: &Areas) -> Option<u64> {
    let (young, heap) = (areas.get(Area::Young), areas.get(Area::Heap));
    let freed = |change: Change| Some(i128::from(change.before?) - i128::from(change.after?));
    u64::try_from(freed(young)? - freed(heap)?).ok()
}
