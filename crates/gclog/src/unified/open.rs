//! Collections under way, by their number, and the last event, which waits for what may still follow it.
//!
//! What a collection prints before the line with its duration is gathered in a draft. The finished pause waits for
//! its CPU time (`gc,cpu`), which comes right after it, and for the pause around it. It is reported when anything else
//! of its collection, another event or a safepoint comes. Buffers go round, so that nothing is allocated per pause.

use crate::account::Read;
use crate::context::Context;
use crate::event::{Ages, Area, Change, Concurrent, Cpu, Event, Kind, Pause, Stamp, Troubles};
use crate::names::Name;
use crate::number::{SECONDS, decimal};

/// Collections that can be under way. HotSpot has two or three; more are left behind by damage.
const MOST: usize = 16;

/// What one collection has printed so far.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is set by a line of its own, in any order"
)]
#[derive(Debug)]
pub(super) struct Draft {
    id: u64,
    /// Filled bit by bit; `name` and `kind` mean something once `stopped`.
    pub(super) pause: Pause,
    pub(super) ages: Ages,
    pub(super) has_ages: bool,
    /// G1: regions of Eden, survivors, old, humongous.
    pub(super) regions: [Option<Regions>; 4],
    /// Threads are stopped for it: a pause began, its end has not come.
    stopped: bool,
    /// Another pause lay within it.
    around: bool,
    /// When its cycle began.
    pub(super) cycle_began: Option<Stamp>,
    /// `Concurrent Mark Abort` was printed.
    pub(super) aborted: bool,
    /// Phases that have begun and not ended.
    pub(super) phases_open: u8,
    /// ZGC's tables: of which part of the heap the next row is, and what the rows said.
    pub(super) section: Option<Area>,
    pub(super) table: crate::event::Areas,
    /// ZGC: what the young generation has given to the old one.
    pub(super) promoted: Option<u64>,
    /// ZGC: what the application has allocated since the cycle began.
    pub(super) allocated: Option<u64>,
    /// What a mark found alive: in the young generation or the whole heap, and in the old generation.
    pub(super) live: [Option<u64>; 2],
    /// ZGC as in JDK 11, whose table has a reserve: what it calls allocated holds what was moved.
    pub(super) counts_moved: bool,
    /// The kind of reference that the next count is of.
    pub(super) reference: Option<Name>,
    /// Line of the last use.
    used: u64,
}

/// Numbers of regions of one sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regions {
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) capacity: Option<u64>,
}

/// Drafts and the waiting event.
#[derive(Debug)]
pub(super) struct Open {
    drafts: Vec<Draft>,
    /// Index of the draft used last; the next line is mostly of the same collection.
    last: usize,
    waiting: Waiting,
    /// Of the waiting pause, also while nothing waits: its buffers are used again.
    pause: Pause,
    ages: Ages,
    has_ages: bool,
    concurrent: Concurrent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Pause,
    Concurrent,
}

impl Default for Open {
    fn default() -> Self {
        let name = Name::default();
        Self {
            drafts: Vec::new(),
            last: 0,
            waiting: Waiting::Nothing,
            pause: blank(),
            ages: Ages::default(),
            has_ages: false,
            concurrent: Concurrent {
                line: 0,
                began: Stamp::default(),
                ended: Stamp::default(),
                id: None,
                name,
                cycle: false,
                cause: None,
                duration_ns: None,
                cpu_ns: None,
                aborted: false,
                areas: crate::event::Areas::default(),
                promoted: None,
                allocated: None,
                live: None,
            },
        }
    }
}

impl Draft {
    fn new(id: u64) -> Self {
        Self {
            id,
            pause: blank(),
            ages: Ages::default(),
            has_ages: false,
            regions: [None; 4],
            stopped: false,
            around: false,
            cycle_began: None,
            aborted: false,
            phases_open: 0,
            section: None,
            table: crate::event::Areas::default(),
            promoted: None,
            allocated: None,
            live: [None; 2],
            counts_moved: false,
            reference: None,
            used: 0,
        }
    }

    /// What the marks of this cycle found alive, reported once, at its end. Of a minor collection the tables tell the young generation
    /// alone.
    pub(super) fn live(&mut self, ends: bool, minor: bool) -> Option<u64> {
        if !ends {
            return None;
        }
        let [first, old] = std::mem::take(&mut self.live);
        match (first, old) {
            _ if minor => None,
            (None, None) => None,
            (first, old) => Some(first.unwrap_or(0).saturating_add(old.unwrap_or(0))),
        }
    }

    /// Forgets everything but the buffers.
    fn renew(&mut self, id: u64) {
        self.id = id;
        self.renew_pause();
        self.cycle_began = None;
        self.aborted = false;
        self.section = None;
        self.table = crate::event::Areas::default();
        self.promoted = None;
        self.allocated = None;
        self.live = [None; 2];
        self.counts_moved = false;
    }

    /// Forgets what belongs to one pause.
    fn renew_pause(&mut self) {
        clear(&mut self.pause);
        clear_ages(&mut self.ages);
        self.has_ages = false;
        self.regions = [None; 4];
        self.stopped = false;
        self.around = false;
        self.phases_open = 0;
        self.reference = None;
    }
}

impl Open {
    /// The draft of a collection, a new one if there is none.
    pub(super) fn draft(&mut self, context: &mut Context<'_>, id: u64) -> &mut Draft {
        if self
            .drafts
            .get(self.last)
            .is_none_or(|draft| draft.id != id)
        {
            self.last = self.place(context, id);
        }
        let draft = &mut self.drafts[self.last];
        draft.used = context.line;
        draft
    }

    /// The draft of a collection, if it has one.
    pub(super) fn known(&mut self, id: u64) -> Option<&mut Draft> {
        self.drafts.iter_mut().find(|draft| draft.id == id)
    }

    /// The draft of the pause that began last and has not ended: what a line without a number belongs to.
    pub(super) fn stopped(&mut self) -> Option<&mut Draft> {
        self.drafts
            .iter_mut()
            .filter(|draft| draft.stopped)
            .max_by_key(|draft| draft.used)
    }

    fn place(&mut self, context: &mut Context<'_>, id: u64) -> usize {
        if let Some(place) = self.drafts.iter().position(|draft| draft.id == id) {
            return place;
        }
        if self.drafts.len() < MOST {
            self.drafts.push(Draft::new(id));
            return self.drafts.len() - 1;
        }
        let oldest = (0..MOST)
            .min_by_key(|place| self.drafts[*place].used)
            .unwrap_or(0);
        self.give_up(context, oldest);
        self.drafts[oldest].renew(id);
        oldest
    }

    /// Tells a pause of which only the beginning was printed.
    fn give_up(&mut self, context: &mut Context<'_>, place: usize) {
        if self.drafts[place].stopped {
            self.tell(context);
            let draft = &mut self.drafts[place];
            if draft.has_ages {
                draft.pause.ages = Some(std::mem::take(&mut draft.ages));
            }
            context.tell(Event::Pause(&draft.pause));
            draft.renew_pause();
        }
    }

    /// A pause begins: the draft to name it in. What was printed under its number before was not of it.
    pub(super) fn begin(&mut self, context: &mut Context<'_>, id: u64) -> &mut Draft {
        self.tell(context);
        let draft = self.draft(context, id);
        draft.renew_pause();
        draft.stopped = true;
        draft
    }

    /// A pause has ended; its draft holds all but what stands here. It waits now.
    pub(super) fn end(
        &mut self,
        context: &mut Context<'_>,
        id: u64,
        kind: Kind,
        final_remark: bool,
    ) -> &mut Pause {
        // One that waits may lie within this one, known by their numbers: a young collection that turns into a full
        // one takes the lower number and is printed after it.
        if self.waiting == Waiting::Pause
            && kind == Kind::Young
            && self.pause.kind == Kind::Full
            && self.pause.id.is_some_and(|inner| inner == id + 1)
            && self.pause.duration_ns.is_some()
        {
            self.pause.nested = true;
            self.draft(context, id).around = true;
        }
        self.tell(context);
        // Or this one lies within another that has begun.
        let mut nested = final_remark;
        for outer in &mut self.drafts {
            if outer.stopped && outer.id != id {
                let within = match outer.pause.kind {
                    Kind::Young => kind == Kind::Full && outer.id + 1 == id,
                    Kind::Remark => final_remark,
                    _ => false,
                };
                outer.around |= within;
                nested |= within;
            }
        }
        let place = self.place(context, id);
        self.last = place;
        let draft = &mut self.drafts[place];
        draft.used = context.line;
        std::mem::swap(&mut draft.pause, &mut self.pause);
        std::mem::swap(&mut draft.ages, &mut self.ages);
        self.has_ages = draft.has_ages;
        if kind == Kind::Young && !draft.around {
            self.pause.promoted = promoted(&self.pause);
        }
        draft.renew_pause();
        self.pause.nested = nested;
        self.pause.kind = kind;
        self.waiting = Waiting::Pause;
        &mut self.pause
    }

    /// A concurrent phase or cycle has ended. It waits now.
    pub(super) fn concurrent(&mut self, context: &mut Context<'_>, concurrent: &Concurrent) {
        self.tell(context);
        self.concurrent = *concurrent;
        self.waiting = Waiting::Concurrent;
    }

    /// CMS prints what its sweep has left after all concurrent phases; it goes to the last of them.
    pub(super) fn swept(&mut self, id: u64, change: Change) -> bool {
        let fits = self.waiting == Waiting::Concurrent && self.concurrent.id == Some(id);
        if fits {
            *self.concurrent.areas.at(Area::Old) = change;
        }
        fits
    }

    /// Shenandoah prints what metaspace holds after the last event of a cycle; it goes to that one.
    pub(super) fn left(&mut self, metaspace: Change) -> bool {
        let areas = match self.waiting {
            Waiting::Nothing => return false,
            Waiting::Pause => &mut self.pause.areas,
            Waiting::Concurrent => &mut self.concurrent.areas,
        };
        *areas.at(Area::Metaspace) = metaspace;
        true
    }

    /// `User=0.02s Sys=0.01s Real=0.01s`.
    pub(super) fn cpu(&mut self, id: u64, text: &[u8]) -> Read {
        let Some(cpu) = cpu(text) else {
            return Read::Unknown;
        };
        match self.waiting {
            Waiting::Pause if self.pause.id == Some(id) && self.pause.cpu.is_none() => {
                self.pause.cpu = Some(cpu);
            }
            Waiting::Concurrent if self.concurrent.id == Some(id) => {
                self.concurrent.cpu_ns = cpu.user_ns.checked_add(cpu.sys_ns);
            }
            _ => return Read::Ignored,
        }
        Read::Understood
    }

    /// What has ended and was not reported yet.
    pub(super) fn waiting(&self) -> Option<Event<'_>> {
        match self.waiting {
            Waiting::Nothing => None,
            Waiting::Pause => Some(Event::Pause(&self.pause)),
            Waiting::Concurrent => Some(Event::Concurrent(&self.concurrent)),
        }
    }

    /// Tells what waits: nothing more about it can follow.
    pub(super) fn tell(&mut self, context: &mut Context<'_>) {
        match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Nothing => {}
            Waiting::Pause => {
                if self.has_ages {
                    self.pause.ages = Some(std::mem::take(&mut self.ages));
                }
                context.tell(Event::Pause(&self.pause));
                self.ages = self.pause.ages.take().unwrap_or_default();
                clear_ages(&mut self.ages);
                clear(&mut self.pause);
            }
            Waiting::Concurrent => context.tell(Event::Concurrent(&self.concurrent)),
        }
    }

    /// Tells everything, also pauses of which only the beginning was printed.
    pub(super) fn finish(&mut self, context: &mut Context<'_>) {
        self.tell(context);
        for place in 0..self.drafts.len() {
            self.give_up(context, place);
        }
        self.drafts.clear();
    }
}

/// What the old generation gained in a young collection, where both sizes are printed in K.
fn promoted(pause: &Pause) -> Option<u64> {
    let old = pause.areas.get(Area::Old);
    // G1's sizes are counts of regions, which say nothing of what is in them.
    if pause.areas.get(Area::Eden).after.is_some()
        && pause.areas.get(Area::Young).capacity.is_none()
    {
        return None;
    }
    old.after?.checked_sub(old.before?)
}

/// Nothing of a pause.
fn blank() -> Pause {
    Pause {
        line: 0,
        began: Stamp::default(),
        id: None,
        name: Name::default(),
        kind: Kind::Other,
        cause: None,
        starts_cycle: false,
        duration_ns: None,
        nested: false,
        areas: crate::event::Areas::default(),
        promoted: None,
        young_occupancy: None,
        cpu: None,
        phases: Vec::new(),
        ages: None,
        references: Vec::new(),
        troubles: Troubles::default(),
    }
}

/// Makes it blank and keeps its buffers.
fn clear(pause: &mut Pause) {
    let mut phases = std::mem::take(&mut pause.phases);
    let mut references = std::mem::take(&mut pause.references);
    phases.clear();
    references.clear();
    *pause = Pause {
        phases,
        references,
        ..blank()
    };
}

fn clear_ages(ages: &mut Ages) {
    let mut bytes = std::mem::take(&mut ages.bytes);
    bytes.clear();
    *ages = Ages {
        bytes,
        ..Ages::default()
    };
}

fn cpu(text: &[u8]) -> Option<Cpu> {
    let (user_ns, rest) = decimal(text.strip_prefix(b"User=")?, SECONDS)?;
    let (sys_ns, rest) = decimal(rest.strip_prefix(b"s Sys=")?, SECONDS)?;
    let (real_ns, rest) = decimal(rest.strip_prefix(b"s Real=")?, SECONDS)?;
    rest.starts_with(b"s").then_some(Cpu {
        user_ns,
        sys_ns,
        real_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;
    use super::*;

    #[test]
    fn cpu_time_goes_to_the_pause_before_it() {
        let parsed = parsed(
            "[1.3s][gc    ] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
             [1.3s][gc,cpu] GC(0) User=0.01s Sys=0.02s Real=0.06s\n\
             [1.4s][gc    ] GC(1) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
             [1.4s][gc,cpu] GC(7) User=9.01s Sys=9.02s Real=9.06s\n",
        );
        let cpu = parsed.pauses[0].cpu.unwrap();
        assert_eq!(
            (cpu.user_ns, cpu.sys_ns, cpu.real_ns),
            (10_000_000, 20_000_000, 60_000_000)
        );
        assert_eq!(parsed.pauses[1].cpu, None);
    }

    #[test]
    fn a_young_collection_lies_within_the_remark_that_began_before_it() {
        let parsed = parsed(
            "[0.642s][gc,start] GC(2) Pause Remark\n\
             [0.642s][gc,start] GC(3) Pause Young (CMS Final Remark)\n\
             [0.642s][gc,heap ] GC(3) ParNew: 5923K->5921K(46080K)\n\
             [0.642s][gc      ] GC(3) Pause Young (CMS Final Remark) 53M->53M(95M) 0.040ms\n\
             [0.642s][gc,cpu  ] GC(3) User=0.07s Sys=0.00s Real=0.00s\n\
             [0.646s][gc      ] GC(2) Pause Remark 53M->53M(95M) 3.259ms\n",
        );
        assert_eq!(
            parsed.titles(),
            ["Pause Young (CMS Final Remark)", "Pause Remark"]
        );
        let nested: Vec<bool> = parsed.pauses.iter().map(|pause| pause.nested).collect();
        assert_eq!(nested, [true, false]);
        assert_eq!(parsed.pauses[1].areas.get(Area::Young).before, None);
    }

    #[test]
    fn a_full_collection_lies_within_the_young_one_that_turned_into_it() {
        let lines = "[5.789s][gc] GC(4) Pause Full (Allocation Failure) 215M->132M(247M) 146.153ms\n\
                     [5.789s][gc,heap] GC(3) Tenured: 142112K->135957K(174784K)\n\
                     [5.789s][gc] GC(3) Pause Young (Allocation Failure) 215M->132M(247M) 146.211ms\n\
                     [6.789s][gc] GC(5) Pause Full (System.gc()) 215M->132M(247M) 146.153ms\n";
        let begun = "[5.643s][gc,start] GC(3) Pause Young (Allocation Failure)\n\
                     [5.643s][gc,start] GC(4) Pause Full (Allocation Failure)\n";
        for log in [lines.to_owned(), format!("{begun}{lines}")] {
            let parsed = parsed(&log);
            let nested: Vec<bool> = parsed.pauses.iter().map(|pause| pause.nested).collect();
            assert_eq!(nested, [true, false, false], "{log}");
            // What the full collection moved is in the figures of both.
            assert_eq!(parsed.pauses[1].promoted, None);
        }
    }

    #[test]
    fn the_loss_of_an_end_makes_nothing_nested() {
        let parsed = parsed(
            "[1s][gc,start] GC(0) Pause Young (Normal) (G1 Evacuation Pause)\n\
             [2s][gc] GC(1) Pause Full (System.gc()) 9M->1M(9M) 5.000ms\n\
             [3s][gc] GC(2) Pause Full (System.gc()) 9M->1M(9M) 5.000ms\n",
        );
        let durations: Vec<_> = parsed
            .pauses
            .iter()
            .filter(|pause| !pause.nested)
            .map(|pause| pause.duration_ns)
            .collect();
        assert!(durations.contains(&Some(5_000_000)));
        // The one without an end is reported at the end of the log.
        assert_eq!(durations.last(), Some(&None));
    }

    #[test]
    fn collections_left_open_do_not_pile_up() {
        let log: Vec<String> = (0..1000)
            .map(|id| format!("[{id}s][gc,start] GC({}) Pause Remark\n", id * 2))
            .collect();
        assert_eq!(parsed(&log.concat()).pauses.len(), 1000);
    }

    #[test]
    fn a_cut_log_has_a_pause_without_a_duration() {
        let parsed = parsed(
            "[1.5s][gc,start] GC(7) Pause Full (System.gc())\n[1.6s][gc,age] GC(7) - age   1: 5 bytes, 5 total\n",
        );
        let pause = &parsed.pauses[0];
        assert_eq!((pause.id, pause.duration_ns), (Some(7), None));
        assert_eq!(pause.began.uptime_ns, Some(1_500_000_000));
        assert_eq!(
            pause.ages.as_ref().map(|ages| ages.bytes.clone()),
            Some(vec![5])
        );
    }

    #[test]
    fn what_the_sweep_left_goes_to_the_last_phase_of_the_cycle() {
        let parsed = parsed(
            "[0.6s][gc] GC(2) Concurrent Reset 0.046ms\n\
             [0.6s][gc,cpu] GC(2) User=0.04s Sys=0.01s Real=0.00s\n\
             [0.6s][gc,heap] GC(2) Old: 48865K->34645K(51200K)\n",
        );
        let reset = parsed.concurrent[0];
        assert_eq!(reset.cpu_ns, Some(50_000_000));
        assert_eq!(reset.areas.get(Area::Old).after, Some(34645 << 10));
    }
}
