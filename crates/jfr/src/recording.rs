//! Chunks and their events, one after the other.
//!
//! A finished chunk says where its description and its constants are, so both are read before its first event. A chunk that was
//! not finished, or is cut, is walked once to find them: the JVM flushes both every second from JDK 14 on. Unwanted
//! events are skipped by their size.

use std::collections::HashMap;
use std::io::{Read, Seek};

use crate::bytes::Cursor;
use crate::constants::Constants;
use crate::error::Error;
use crate::header::{self, Header};
use crate::metadata::{Classes, Step};
use crate::value::Value;
use crate::window::Window;

/// Fields that can be asked of one event.
pub const MOST_FIELDS: usize = 8;
/// The longest event that is decoded, and the longest description of types; longer ones are damage. The JVM's buffers for
/// events have some hundred kilobytes.
const LONGEST: u64 = 64 << 20;
/// The longest checkpoint: async-profiler writes all constants of a chunk as one.
const LONGEST_CHECKPOINT: u64 = 192 << 20;
/// Bytes of the longest size and type.
const HEAD: usize = 18;
/// Checkpoints of a chunk that are followed.
const MOST_CHECKPOINTS: usize = 1 << 20;
/// Types with a small number, as all are, are found without a search.
const SMALL: i64 = 1 << 14;
/// Of an event's type.
const METADATA: i64 = 0;
const CHECKPOINT: i64 = 1;

/// An event type and the fields that are read of it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// Its name, such as `jdk.ExecutionSample`; `com.oracle.jdk.ExecutionSample` of JDK 9 is the same.
    pub event: &'w str,
    /// Names of fields, at most [`MOST_FIELDS`]; those of a contained structure with a dot, such as `heapSpace.start`.
    pub fields: &'w [&'w str],
}

/// An event that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its position among the wanted ones.
    pub wanted: usize,
    /// Its fields in the order in which they were asked for.
    pub fields: &'a [Value<'a>],
    /// The constants of its chunk.
    pub constants: &'a Constants,
}

/// How often a type occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The type.
    pub event: String,
    /// Its events.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where a recording cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the chunk, from 1.
    pub chunk: u64,
    /// Place in the file.
    pub offset: u64,
    /// What is wrong there, and what is missing for it.
    pub what: String,
}

/// A recording of one or several chunks.
///
/// The reader needs to seek, since constants come behind the events that refer to them; it is read twice at most.
pub struct Recording<R> {
    window: Window<R>,
    next: u64,
    chunk: u64,
}

/// A chunk; ask for its events once.
pub struct Chunk<'r, R> {
    window: &'r mut Window<R>,
    next: &'r mut u64,
    number: u64,
    began: u64,
    end: u64,
    constants: Constants,
    plans: Plans,
    tallied: Tallied,
    damage: Vec<Damage>,
}

/// Events and bytes of each class, and of what has none.
struct Tallied {
    classes: Vec<(u64, u64)>,
    metadata: (u64, u64),
    checkpoints: (u64, u64),
    unknown: (u64, u64),
}

impl Tallied {
    fn of(classes: usize) -> Self {
        Self {
            classes: vec![(0, 0); classes],
            metadata: (0, 0),
            checkpoints: (0, 0),
            unknown: (0, 0),
        }
    }

    #[inline]
    fn add(&mut self, class: Option<usize>, id: i64, size: u64) {
        let counted = match class {
            Some(class) => &mut self.classes[class],
            None if id == METADATA => &mut self.metadata,
            None if id == CHECKPOINT => &mut self.checkpoints,
            None => &mut self.unknown,
        };
        counted.0 += 1;
        counted.1 += size;
    }
}

impl<R: Read + Seek> Recording<R> {
    /// Begins to read; refuses what is no recording.
    pub fn open(reader: R) -> Result<Self, Error> {
        let mut window = Window::new(reader)?;
        Header::parse(first(&mut window, 0)?)?;
        Ok(Self {
            window,
            next: 0,
            chunk: 0,
        })
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.window.length()
    }

    /// The next chunk, `None` behind the last. What follows a chunk and is none itself is an error from the second on only in
    /// the sense of [`Damage`]: the caller gets what is before it.
    pub fn next_chunk(
        &mut self,
        wanted: &[Wanted<'_>],
    ) -> Result<Option<Result<Chunk<'_, R>, Damage>>, Error> {
        let began = self.next;
        if began >= self.window.length() {
            return Ok(None);
        }
        self.chunk += 1;
        let number = self.chunk;
        let damage = |offset, what: String| Damage {
            chunk: number,
            offset,
            what,
        };
        let length = self.window.length();
        let header = match Header::parse(first(&mut self.window, began)?) {
            Ok(header) => header,
            Err(Error::Io(error)) => return Err(error.into()),
            Err(error) => {
                self.next = length;
                let what = format!("{error}; {} bytes are not read", length - began);
                return Ok(Some(Err(damage(began, what))));
            }
        };
        let declared = began.saturating_add(header.size);
        let is_whole = header.is_finished && declared <= length;
        let end = if is_whole { declared } else { length };
        self.next = end;
        let mut notes = Vec::new();
        let mut found = if is_whole {
            located(&mut self.window, began, end, &header)?
        } else {
            if header.is_finished {
                let what = format!("it is cut: {} of its bytes are missing", declared - length);
                notes.push(damage(length, what));
            } else {
                let what = "it was not finished: the JVM still writes it, was killed or crashed";
                notes.push(damage(began, what.to_owned()));
            }
            None
        };
        if found.is_none() {
            let scanned = scan(&mut self.window, began, end)?;
            self.next = scanned.end;
            if is_whole {
                let what = "its description of types is not where its header says".to_owned();
                notes.push(damage(began + header.metadata, what));
            }
            if let Some(classes) = scanned.classes {
                found = Some((classes, scanned.checkpoints));
            }
        }
        let end = self.next;
        let Some((classes, checkpoints)) = found else {
            let what = "it has no description of its types, so its events cannot be read";
            return Ok(Some(Err(damage(began, what.to_owned()))));
        };
        let mut constants = Constants::new(classes, header);
        let plans = Plans::new(&mut constants, wanted);
        let mut place = began;
        for at in checkpoints {
            place = at;
            let Some(body) = body(&mut self.window, at, end, CHECKPOINT, LONGEST_CHECKPOINT)?
            else {
                notes.push(damage(
                    at,
                    "a checkpoint is damaged; some names are missing".into(),
                ));
                continue;
            };
            if let Err(why) = constants.add(body) {
                notes.push(damage(at, why.to_owned()));
                break;
            }
        }
        if place == began {
            let what = "it has no constants: threads, methods and classes have no names";
            notes.push(damage(began, what.to_owned()));
        }
        constants.finish();
        let tallied = Tallied::of(constants.classes.len());
        Ok(Some(Ok(Chunk {
            window: &mut self.window,
            next: &mut self.next,
            number,
            began,
            end,
            constants,
            plans,
            tallied,
            damage: notes,
        })))
    }
}

impl<R: Read + Seek> Chunk<'_, R> {
    /// When and how it was recorded.
    pub fn header(&self) -> &Header {
        &self.constants.header
    }

    /// Its constants.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes from its beginning to its end.
    pub fn bytes(&self) -> u64 {
        self.end - self.began
    }

    /// Where it could not be understood; complete once its events were read.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How often each type occurs; known once its events were read.
    pub fn counts(&self) -> Vec<Count> {
        let classes = &self.constants.classes;
        let prefix = match self.header().version.0 {
            1 => "com.oracle.jdk",
            _ => "jdk",
        };
        let count = |event: String, (events, bytes)| Count {
            event,
            events,
            bytes,
        };
        let named = self
            .tallied
            .classes
            .iter()
            .enumerate()
            .map(|(class, counted)| {
                // Both have no class of their own in some versions.
                let name = match classes.id(class) {
                    METADATA => format!("{prefix}.Metadata"),
                    CHECKPOINT => format!("{prefix}.Checkpoint"),
                    _ => classes.name(class).to_owned(),
                };
                count(name, *counted)
            });
        let mut all: Vec<Count> = named.collect();
        for (id, name, counted) in [
            (METADATA, "Metadata", self.tallied.metadata),
            (CHECKPOINT, "Checkpoint", self.tallied.checkpoints),
        ] {
            if classes.index(id).is_none() {
                all.push(count(format!("{prefix}.{name}"), counted));
            }
        }
        all.retain(|count| count.events > 0);
        all
    }

    /// Visits the wanted events in the order of the file.
    pub fn each(&mut self, mut visit: impl FnMut(&Event<'_>)) -> Result<(), Error> {
        let mut at = self.began + header::LENGTH;
        let mut need = HEAD;
        let mut short = 0_u64;
        while at < self.end {
            let seen = self.window.view(at, need)?;
            need = HEAD;
            let left = self.end - at;
            let seen = &seen[..seen.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if seen.is_empty() {
                break;
            }
            let is_last = seen.len() as u64 == left;
            let mut done = 0;
            let mut wrong = None;
            loop {
                let rest = &seen[done..];
                if rest.is_empty() || rest.len() < HEAD && !is_last {
                    break;
                }
                let Some((size, id, head)) = head(rest) else {
                    wrong = Some("an event has no size or type");
                    break;
                };
                let known = self.plans.find(id);
                if size as usize > rest.len() {
                    if size > left - done as u64 {
                        wrong = Some("an event is cut");
                        break;
                    }
                    if known.is_none_or(|(_, plan)| plan.is_none()) {
                        self.tallied.add(known.map(|(class, _)| class), id, size);
                        done += size as usize;
                        break;
                    }
                    if size > LONGEST {
                        wrong = Some("an event is longer than 64 MiB");
                        break;
                    }
                    need = size as usize;
                    break;
                }
                if let Some((_, Some(plan))) = known {
                    let plan = &self.plans.all[plan];
                    let mut values = [Value::Absent; MOST_FIELDS];
                    let body = &rest[head..size as usize];
                    if (plan.read(body, &self.constants.header, &mut values)).is_some() {
                        visit(&Event {
                            wanted: plan.wanted,
                            fields: &values[..plan.fields],
                            constants: &self.constants,
                        });
                    } else {
                        // Its size says where the next one begins.
                        short += 1;
                    }
                }
                self.tallied.add(known.map(|(class, _)| class), id, size);
                done += size as usize;
            }
            at += done as u64;
            if let Some(what) = wrong {
                let what = format!("{what}; {} bytes are not read", self.end - at);
                self.damage.push(Damage {
                    chunk: self.number,
                    offset: at,
                    what,
                });
                break;
            }
        }
        if short > 0 {
            self.damage.push(Damage {
                chunk: self.number,
                offset: self.began,
                what: format!(
                    "{short} events are shorter than their fields; they are counted and not read"
                ),
            });
        }
        if self.tallied.unknown.0 > 0 {
            let what = format!(
                "{} events are of types that it does not describe; they are not counted",
                self.tallied.unknown.0
            );
            self.damage.push(Damage {
                chunk: self.number,
                offset: self.began,
                what,
            });
        }
        *self.next = self.end;
        Ok(())
    }
}

/// As much as a header needs.
fn first<R: Read + Seek>(window: &mut Window<R>, at: u64) -> Result<&[u8], Error> {
    let length = header::LENGTH as usize;
    let seen = window.view(at, length)?;
    Ok(&seen[..seen.len().min(length)])
}

/// Size and type of an event, and the bytes of both. A size of zero, or below that of both, is damage.
#[inline]
fn head(bytes: &[u8]) -> Option<(u64, i64, usize)> {
    let mut cursor = Cursor::new(bytes);
    let size = u64::try_from(cursor.int()?).ok()?;
    let id = cursor.int()?;
    (size >= cursor.at() as u64).then_some((size, id, cursor.at()))
}

/// The body of the event at this place, if it is of this type and not longer.
fn body<R: Read + Seek>(
    window: &mut Window<R>,
    at: u64,
    end: u64,
    id: i64,
    longest: u64,
) -> Result<Option<&[u8]>, Error> {
    let Some((size, found, head)) = head(window.view(at, HEAD)?) else {
        return Ok(None);
    };
    if found != id || size > longest || size > end.saturating_sub(at) {
        return Ok(None);
    }
    let size = size as usize;
    Ok(window.view(at, size)?.get(head..size))
}

/// The types of a finished chunk, and the places of its checkpoints; `None` where they are not there.
fn located<R: Read + Seek>(
    window: &mut Window<R>,
    began: u64,
    end: u64,
    header: &Header,
) -> Result<Option<(Classes, Vec<u64>)>, Error> {
    let at = began.saturating_add(header.metadata);
    let classes = body(window, at, end, METADATA, LONGEST)?.and_then(Classes::parse);
    let Some(classes) = classes else {
        return Ok(None);
    };
    let mut places = Vec::new();
    let mut at = began.saturating_add(header.constants);
    // Each is before the next one, so that a circle of them ends.
    let mut before = end;
    while places.len() < MOST_CHECKPOINTS {
        let read = window.view(at, 4 * HEAD)?;
        let Some((size, CHECKPOINT, head)) = head(read) else {
            return Ok(None);
        };
        if at.saturating_add(size) > before {
            return Ok(None);
        }
        places.push(at);
        before = at;
        let mut cursor = Cursor::new(&read[head..]);
        let delta = cursor.int().and(cursor.int()).and_then(|_| cursor.int());
        match delta.map(|delta| at.checked_add_signed(delta)) {
            Some(_) if delta == Some(0) => {
                places.reverse();
                return Ok(Some((classes, places)));
            }
            Some(Some(next)) if next > began => at = next,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// What a walk along the events of a chunk finds.
struct Scanned {
    classes: Option<Classes>,
    checkpoints: Vec<u64>,
    end: u64,
}

/// Walks along a chunk whose header cannot be used, up to its end, damage, or the beginning of another chunk.
fn scan<R: Read + Seek>(window: &mut Window<R>, began: u64, end: u64) -> Result<Scanned, Error> {
    let mut found = Scanned {
        classes: None,
        checkpoints: Vec::new(),
        end,
    };
    let mut last_description = None;
    let mut at = began + header::LENGTH;
    while at < end {
        let seen = window.view(at, HEAD)?;
        if seen.starts_with(header::MAGIC) {
            found.end = at;
            break;
        }
        let Some((size, id, _)) = head(seen) else {
            break;
        };
        if size > end - at {
            break;
        }
        match id {
            METADATA => last_description = Some(at),
            CHECKPOINT if found.checkpoints.len() < MOST_CHECKPOINTS => found.checkpoints.push(at),
            _ => {}
        }
        at += size;
    }
    if let Some(at) = last_description {
        found.classes = body(window, at, end, METADATA, LONGEST)?.and_then(Classes::parse);
    }
    Ok(found)
}

/// How the fields of a wanted event are read.
struct Plan {
    wanted: usize,
    fields: usize,
    /// Up to the last field that is wanted; a field without a number is passed over.
    steps: Vec<(Step, Option<u8>)>,
}

impl Plan {
    #[inline]
    fn read<'a>(
        &'a self,
        body: &'a [u8],
        header: &Header,
        values: &mut [Value<'a>; MOST_FIELDS],
    ) -> Option<()> {
        let mut cursor = Cursor::new(body);
        for (step, slot) in &self.steps {
            match slot {
                Some(slot) => {
                    values[usize::from(*slot)] = step.value(&mut cursor, header)?;
                }
                None => step.skip(&mut cursor)?,
            }
        }
        Some(())
    }
}

/// By type: its class, and how it is read if it is wanted.
struct Plans {
    all: Vec<Plan>,
    small: Vec<Option<(usize, Option<usize>)>>,
    large: HashMap<i64, (usize, Option<usize>)>,
}

impl Plans {
    fn new(constants: &mut Constants, wanted: &[Wanted<'_>]) -> Self {
        let mut plans = Self {
            all: Vec::new(),
            small: Vec::new(),
            large: HashMap::new(),
        };
        let mut kept = Vec::new();
        for class in 0..constants.classes.len() {
            let name = same(constants.classes.name(class));
            let is_wanted = |wanted: &Wanted<'_>| same(wanted.event) == name;
            let layout = constants.classes.layout(class);
            let mut planned = None;
            if let (Some(wanted_at), Some(steps)) = (wanted.iter().position(is_wanted), layout) {
                let fields = &wanted[wanted_at].fields;
                assert!(
                    fields.len() <= MOST_FIELDS,
                    "more fields than an event may be asked for"
                );
                let slot = |step: &Step| fields.iter().position(|field| *field == step.name);
                let last = steps.iter().rposition(|step| slot(step).is_some());
                let steps = &steps[..last.map_or(0, |last| last + 1)];
                let slots = steps
                    .iter()
                    .map(|step| (step.clone(), slot(step).map(|slot| slot as u8)));
                planned = Some(plans.all.len());
                let slots: Vec<(Step, Option<u8>)> = slots.collect();
                kept.extend(slots.iter().filter_map(|(step, slot)| match step.what {
                    crate::metadata::What::Constant(class) if slot.is_some() => Some(class),
                    _ => None,
                }));
                plans.all.push(Plan {
                    wanted: wanted_at,
                    fields: fields.len(),
                    steps: slots,
                });
            }
            let id = constants.classes.id(class);
            match usize::try_from(id) {
                Ok(at) if id < SMALL => {
                    if plans.small.len() <= at {
                        plans.small.resize(at + 1, None);
                    }
                    plans.small[at] = Some((class, planned));
                }
                _ => {
                    plans.large.insert(id, (class, planned));
                }
            }
        }
        constants.want(kept);
        plans
    }

    #[inline]
    fn find(&self, id: i64) -> Option<(usize, Option<usize>)> {
        match self.small.get(id as usize) {
            Some(found) => *found,
            None => self.large.get(&id).copied(),
        }
    }
}

/// The name of a type without the prefix that JDK 9 had.
fn same(name: &str) -> &str {
    let name = name.strip_prefix("com.oracle.").unwrap_or(name);
    name.strip_prefix("jdk.").unwrap_or(name)
}
