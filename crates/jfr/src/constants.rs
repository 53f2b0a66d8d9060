//! The constant pools of a chunk: stacks, methods, threads, classes, names.
//!
//! Checkpoints are kept as they are written, with one entry of 16 bytes per constant that says where it begins. A constant is
//! decoded when an event refers to it; most never are.

use std::borrow::Cow;

use crate::bytes::{Cursor, Text};
use crate::header::Header;
use crate::metadata::{Classes, Step};
use crate::value::{Array, Constant, Value, walk};

/// Bytes of all checkpoints of a chunk; those of a chunk of 1 GB take some tens of MB. What is beyond stays without a name.
const MOST_BYTES: usize = 192 << 20;
/// Constants of a chunk, as many.
const MOST_CONSTANTS: usize = 6 << 20;
/// Constants that refer to constants; a method refers to a class, which refers to its name.
const DEEPEST: usize = 4;

/// The constant pools of a chunk.
#[derive(Debug)]
pub struct Constants {
    pub(crate) classes: Classes,
    pub(crate) header: Header,
    bytes: Vec<u8>,
    pools: Vec<Pool>,
    count: usize,
}

/// The constants of one class: key and place, sorted by key.
#[derive(Clone, Debug, Default)]
struct Pool {
    entries: Vec<(i64, u32)>,
    is_wanted: bool,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its name in Java, or else that of the operating system.
    pub name: String,
    /// Its number in Java; 0 for threads of the JVM itself.
    pub java_id: i64,
    /// Its number in the operating system.
    pub os_id: i64,
}

/// A method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method {
    /// Its class, with dots; empty for native code.
    pub class: String,
    /// Its name.
    pub name: String,
}

/// A line of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The method.
    pub method: Constant,
    /// The line in its source; 0 or less where it is unknown.
    pub line: i64,
    /// The kind of its code, such as `Inlined`; its text is in the constants.
    pub kind: Option<Constant>,
}

impl Constants {
    pub(crate) fn new(classes: Classes, header: Header) -> Self {
        let pools = vec![Pool::default(); classes.len()];
        Self {
            classes,
            header,
            bytes: Vec::new(),
            pools,
            count: 0,
        }
    }

    /// Keeps the constants of these classes, and of those that they refer to.
    pub(crate) fn want(&mut self, from: impl IntoIterator<Item = usize>) {
        let mut left: Vec<usize> = from.into_iter().collect();
        left.extend(self.classes.string);
        while let Some(class) = left.pop() {
            let Some(pool) = self.pools.get_mut(class).filter(|pool| !pool.is_wanted) else {
                continue;
            };
            pool.is_wanted = true;
            referred(self.classes.layout(class).unwrap_or_default(), &mut left);
        }
    }

    /// Adds a checkpoint: its body, behind size and type. Says what of it could not be read.
    pub(crate) fn add(&mut self, body: &[u8]) -> Result<(), &'static str> {
        if self.bytes.len() + body.len() > MOST_BYTES {
            return Err("its constants take more than 192 MiB; the rest have no names");
        }
        let base = self.bytes.len();
        self.bytes.extend_from_slice(body);
        let mut cursor = Cursor::new(body);
        let result = (|| {
            for _start_duration_delta in 0..3 {
                cursor.int()?;
            }
            cursor.byte()?;
            for _ in 0..cursor.count()? {
                let class = self.classes.index(cursor.int()?)?;
                let steps = self.classes.layout(class)?;
                let pool = &mut self.pools[class];
                for _ in 0..cursor.count()? {
                    let key = cursor.int()?;
                    if pool.is_wanted && self.count < MOST_CONSTANTS {
                        self.count += 1;
                        pool.entries.push((key, (base + cursor.at()) as u32));
                    }
                    walk(steps, &mut cursor)?;
                }
            }
            Some(())
        })();
        if result.is_none() {
            return Err("a checkpoint is damaged; some names are missing");
        }
        if self.count >= MOST_CONSTANTS {
            return Err("it has more than 6 million constants; the rest have no names");
        }
        Ok(())
    }

    /// Ends the reading of checkpoints.
    pub(crate) fn finish(&mut self) {
        for pool in &mut self.pools {
            // A later constant replaces an earlier one of the same key, so the order of equal keys stays.
            pool.entries.sort_by_key(|(key, _)| *key);
        }
    }

    /// The fields of a constant, and its bytes.
    fn find(&self, constant: Constant) -> Option<(&[Step], Cursor<'_>)> {
        let entries = &self.pools.get(constant.class)?.entries;
        let behind = entries.partition_point(|(key, _)| *key <= constant.key);
        let (key, at) = entries.get(behind.checked_sub(1)?)?;
        let steps = self.classes.layout(constant.class)?;
        (*key == constant.key).then(|| (steps, Cursor::new(&self.bytes[*at as usize..])))
    }

    /// A field of a constant; absent where it has none.
    pub fn field(&self, constant: Constant, name: &str) -> Value<'_> {
        self.find(constant)
            .and_then(|(steps, mut cursor)| {
                for step in steps {
                    if step.name == name {
                        return step.value(&mut cursor, &self.header);
                    }
                    step.skip(&mut cursor)?;
                }
                None
            })
            .unwrap_or_default()
    }

    /// The name of an event type or class by its number in this chunk.
    pub fn type_name(&self, id: i64) -> Option<&str> {
        Some(self.classes.name(self.classes.index(id)?))
    }

    /// A text, or the text of a constant that is one: a symbol, the name of a state. `None` for null and where it is missing.
    pub fn text<'a>(&'a self, value: Value<'a>) -> Option<Cow<'a, str>> {
        self.text_of(value, 0)
    }

    fn text_of<'a>(&'a self, value: Value<'a>, depth: usize) -> Option<Cow<'a, str>> {
        if depth > DEEPEST {
            return None;
        }
        match value {
            Value::Text(Text::Constant(key)) => {
                let class = self.classes.string?;
                self.text_of(Value::Constant(Constant { class, key }), depth + 1)
            }
            Value::Text(text) => text.decoded(),
            Value::Constant(constant) => {
                let (steps, mut cursor) = self.find(constant)?;
                let first = steps.first()?.value(&mut cursor, &self.header)?;
                self.text_of(first, depth + 1)
            }
            _ => None,
        }
    }

    /// The name of a class as programs write it: `java.lang.String`, `byte[]`.
    pub fn class_name(&self, value: Value<'_>) -> Option<String> {
        let class = value.constant()?;
        let name = self.text(self.field(class, "name"))?;
        Some(readable(&name))
    }

    /// A thread; `None` where the recording does not describe it.
    pub fn thread(&self, value: Value<'_>) -> Option<Thread> {
        let thread = value.constant()?;
        let (steps, mut cursor) = self.find(thread)?;
        let (mut java, mut os, mut found) = (None, None, Thread::default());
        for step in steps {
            let value = step.value(&mut cursor, &self.header)?;
            match step.name.as_str() {
                "javaName" => java = self.text(value),
                "osName" => os = self.text(value),
                "javaThreadId" => found.java_id = value.int().unwrap_or(0),
                "osThreadId" => found.os_id = value.int().unwrap_or(0),
                _ => {}
            }
        }
        let name = java.filter(|name| !name.is_empty()).or(os);
        found.name = name.unwrap_or_default().into_owned();
        Some(found)
    }

    /// A method; `None` where the recording does not describe it.
    pub fn method(&self, method: Constant) -> Option<Method> {
        let (steps, mut cursor) = self.find(method)?;
        let mut found = Method::default();
        for step in steps {
            let value = step.value(&mut cursor, &self.header)?;
            match step.name.as_str() {
                "type" => found.class = self.class_name(value).unwrap_or_default(),
                "name" => found.name = self.text(value).unwrap_or_default().into_owned(),
                _ => {}
            }
        }
        Some(found)
    }

    /// The lines of a stack, innermost first.
    pub fn frames(&self, stack: Constant, mut each: impl FnMut(Frame)) {
        let Value::Array(Array {
            steps,
            count,
            bytes,
        }) = self.field(stack, "frames")
        else {
            return;
        };
        let mut cursor = Cursor::new(bytes);
        let place = |name: &str| steps.iter().position(|step| step.name == name);
        let (Some(method_at), line_at) = (place("method"), place("lineNumber")) else {
            return;
        };
        let kind_at = place("type");
        for _ in 0..count {
            let (mut method, mut line, mut kind) = (None, 0, None);
            for (at, step) in steps.iter().enumerate() {
                if at == method_at || Some(at) == line_at || Some(at) == kind_at {
                    match step.value(&mut cursor, &self.header) {
                        Some(Value::Constant(constant)) if at == method_at => {
                            method = Some(constant);
                        }
                        Some(Value::Constant(constant)) => kind = Some(constant),
                        Some(Value::Int(number)) => line = number,
                        _ => return,
                    }
                } else if step.skip(&mut cursor).is_none() {
                    return;
                }
            }
            if let Some(method) = method {
                each(Frame { method, line, kind });
            }
        }
    }
}

/// Collects the classes that these fields refer to.
fn referred(steps: &[Step], into: &mut Vec<usize>) {
    for step in steps {
        match &step.what {
            crate::metadata::What::Constant(class) => into.push(*class),
            crate::metadata::What::Array(steps) => referred(steps, into),
            _ => {}
        }
    }
}

/// `[Ljava/lang/String;` as `java.lang.String[]`.
fn readable(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = match (dimensions, element) {
        (0, plain) => plain,
        (_, "Z") => "boolean",
        (_, "B") => "byte",
        (_, "C") => "char",
        (_, "S") => "short",
        (_, "I") => "int",
        (_, "J") => "long",
        (_, "F") => "float",
        (_, "D") => "double",
        (_, object) => object
            .strip_prefix('L')
            .and_then(|object| object.strip_suffix(';'))
            .unwrap_or(object),
    };
    element.replace('/', ".") + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_of_classes_are_those_of_programs() {
        for (written, read) in [
            ("java/lang/String", "java.lang.String"),
            ("[B", "byte[]"),
            ("[[Ljava/util/Map;", "java.util.Map[][]"),
            ("java.lang.Thread", "java.lang.Thread"),
            ("[?", "?[]"),
        ] {
            assert_eq!(readable(written), read);
        }
    }
}
