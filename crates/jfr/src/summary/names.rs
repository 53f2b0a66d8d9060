//! Names of methods, threads, classes and places, each kept once and known by a number; and what of a chunk was named already.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::code::Traits;
use crate::constants::Constants;
use crate::value::{Constant, Value};

/// Characters of a name; longer ones are cut, since a damaged or malicious file may have names of megabytes.
const LONGEST: usize = 300;
/// Frames that are shown of a place.
const SHOWN: usize = 5;
/// Frames of a stack that are read; by default the JVM keeps 64, async-profiler 2048.
const DEEPEST: usize = 4096;
/// The name of what the recording does not describe.
pub(crate) const UNKNOWN: &str = "unknown";

/// The number of a name.
pub(crate) type Name = u32;
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// Names of the whole recording.
#[derive(Default)]
pub(crate) struct Names {
    numbers: Map<String, Name>,
    names: Vec<String>,
}

impl Names {
    pub(crate) fn number(&mut self, name: &str) -> Name {
        self.whole(cut(name))
    }

    /// A text of several names, each of them cut already.
    fn whole(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.names.len() as Name;
        self.names.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(crate) fn get(&self, number: Name) -> &str {
        &self.names[number as usize]
    }
}

/// At most [`LONGEST`] characters, and no more bytes than four of each.
pub(crate) fn cut(name: &str) -> &str {
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => &name[..at],
        None => name,
    }
}

/// What constants of this chunk are called.
#[derive(Default)]
pub(crate) struct Known {
    methods: Map<Constant, (Name, Traits)>,
    threads: Map<Constant, Name>,
    classes: Map<Constant, Name>,
    places: Map<Constant, Name>,
}

/// The names, with what is known of a chunk.
pub(crate) struct Namer<'n> {
    pub(crate) names: &'n mut Names,
    pub(crate) known: &'n mut Known,
    pub(crate) constants: &'n Constants,
}

impl Namer<'_> {
    pub(crate) fn thread(&mut self, value: Value<'_>) -> Name {
        let Some(constant) = value.constant() else {
            return self.names.number(UNKNOWN);
        };
        let (names, constants) = (&mut *self.names, self.constants);
        *self.known.threads.entry(constant).or_insert_with(|| {
            let thread = constants.thread(value);
            let name = thread.map(|thread| match thread.name.as_str() {
                "" => format!("thread {}", thread.os_id),
                _ => thread.name,
            });
            names.number(name.as_deref().unwrap_or(UNKNOWN))
        })
    }

    pub(crate) fn class(&mut self, value: Value<'_>) -> Name {
        let Some(constant) = value.constant() else {
            return self.names.number(UNKNOWN);
        };
        let (names, constants) = (&mut *self.names, self.constants);
        *self.known.classes.entry(constant).or_insert_with(|| {
            let name = constants.class_name(value);
            names.number(name.as_deref().unwrap_or(UNKNOWN))
        })
    }

    fn method(&mut self, constant: Constant) -> (Name, Traits) {
        let (names, constants) = (&mut *self.names, self.constants);
        *self.known.methods.entry(constant).or_insert_with(|| {
            let Some(method) = constants.method(constant) else {
                return (names.number(UNKNOWN), Traits::default());
            };
            let name = match method.class.as_str() {
                "" => method.name,
                class => format!("{class}.{}", method.name),
            };
            (names.number(&name), Traits::classify(&name, &method.class))
        })
    }

    /// The methods of a stack, innermost first.
    pub(crate) fn stack(&mut self, stack: Constant, into: &mut Vec<(Name, Traits)>) {
        into.clear();
        let constants = self.constants;
        constants.frames(stack, |frame| {
            if into.len() < DEEPEST {
                into.push(self.method(frame.method));
            }
        });
    }

    /// The frames on top of a stack, those of the JDK left out where there are others, as one text with a line each.
    pub(crate) fn place(&mut self, stack: Value<'_>) -> Option<Name> {
        let stack = stack.constant()?;
        if let Some(place) = self.known.places.get(&stack) {
            return Some(*place);
        }
        let mut frames = Vec::new();
        let constants = self.constants;
        constants.frames(stack, |frame| {
            if frames.len() < DEEPEST {
                frames.push((self.method(frame.method), frame.line));
            }
        });
        let own = frames
            .iter()
            .position(|((_, traits), _)| !traits.is_of_jdk());
        let first = own.unwrap_or(0);
        let lines = frames[first..].iter().take(SHOWN).map(|((name, _), line)| {
            let name = self.names.get(*name);
            if *line > 0 {
                format!("{name}:{line}")
            } else {
                name.to_owned()
            }
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let place = self.names.whole(&text);
        self.known.places.insert(stack, place);
        Some(place)
    }
}
