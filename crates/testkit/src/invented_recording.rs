//! A Flight Recorder file with known contents, written byte by byte, so that readers are tested without a JVM.
//!
//! Source of the format: `jdk.jfr.internal.consumer.ChunkParser` and `jfrTypeSetUtils.cpp` of OpenJDK 17.
#![expect(clippy::cast_possible_wrap, reason = "counts here are small")]

/// What a recording is made of. Every chunk has the same events.
#[derive(Clone, Copy, Debug)]
pub struct InventedRecording {
    /// Chunks.
    pub chunks: u64,
    /// Samples of `shop.Cart.add`, called by `shop.Main.run`, per chunk; of each ten the last is in `org.apache.log4j.Category.info`.
    pub samples: u64,
    /// Waits of 20 ms for `shop.Ledger` per chunk.
    pub waits: u64,
    /// Whether the JVM finished the chunks: else their headers have no places.
    pub is_finished: bool,
}

/// Ticks per second; a tick is a microsecond.
const TICKS_PER_S: i64 = 1_000_000;
/// Start of the first chunk in nanoseconds since 1970; each takes ten seconds.
const STARTED_NS: i64 = 1_700_000_000_000_000_000;

// Ids of classes.
const BOOLEAN: i64 = 1;
const INT: i64 = 3;
const LONG: i64 = 4;
const STRING: i64 = 5;
const CLASS: i64 = 6;
const SYMBOL: i64 = 7;
const THREAD: i64 = 8;
const METHOD: i64 = 9;
const FRAME: i64 = 10;
const STACK: i64 = 11;
const STATE: i64 = 12;
const TIMESTAMP: i64 = 13;
const TIMESPAN: i64 = 14;
const SAMPLE: i64 = 101;
const ENTER: i64 = 102;

/// Of a field: name, class, whether it is a key of a constant, whether there are several, the annotation of its unit.
type Field = (&'static str, i64, bool, bool, Option<i64>);

const CLASSES: &[(i64, &str, &[Field])] = &[
    (BOOLEAN, "boolean", &[]),
    (2, "byte", &[]),
    (INT, "int", &[]),
    (LONG, "long", &[]),
    (STRING, "java.lang.String", &[]),
    (
        CLASS,
        "java.lang.Class",
        &[("name", SYMBOL, true, false, None)],
    ),
    (
        SYMBOL,
        "jdk.types.Symbol",
        &[("string", STRING, false, false, None)],
    ),
    (
        THREAD,
        "java.lang.Thread",
        &[
            ("osName", STRING, false, false, None),
            ("osThreadId", LONG, false, false, None),
            ("javaName", STRING, false, false, None),
            ("javaThreadId", LONG, false, false, None),
        ],
    ),
    (
        METHOD,
        "jdk.types.Method",
        &[
            ("type", CLASS, true, false, None),
            ("name", SYMBOL, true, false, None),
        ],
    ),
    (
        FRAME,
        "jdk.types.StackFrame",
        &[
            ("method", METHOD, true, false, None),
            ("lineNumber", INT, false, false, None),
        ],
    ),
    (
        STACK,
        "jdk.types.StackTrace",
        &[
            ("truncated", BOOLEAN, false, false, None),
            ("frames", FRAME, false, true, None),
        ],
    ),
    (
        STATE,
        "jdk.types.ThreadState",
        &[("name", STRING, false, false, None)],
    ),
    (TIMESTAMP, "jdk.jfr.Timestamp", &[]),
    (TIMESPAN, "jdk.jfr.Timespan", &[]),
    (
        SAMPLE,
        "jdk.ExecutionSample",
        &[
            ("startTime", LONG, false, false, Some(TIMESTAMP)),
            ("sampledThread", THREAD, true, false, None),
            ("stackTrace", STACK, true, false, None),
            ("state", STATE, true, false, None),
        ],
    ),
    (
        ENTER,
        "jdk.JavaMonitorEnter",
        &[
            ("startTime", LONG, false, false, Some(TIMESTAMP)),
            ("duration", LONG, false, false, Some(TIMESPAN)),
            ("eventThread", THREAD, true, false, None),
            ("stackTrace", STACK, true, false, None),
            ("monitorClass", CLASS, true, false, None),
            ("previousOwner", THREAD, true, false, None),
            ("address", LONG, false, false, None),
        ],
    ),
];

impl InventedRecording {
    /// The file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        (0..self.chunks).flat_map(|at| self.chunk(at)).collect()
    }

    fn chunk(&self, at: u64) -> Vec<u8> {
        /// Bytes of the header, which is written last.
        const HEADER: usize = 68;
        let mut bytes = vec![0; HEADER];
        let metadata = bytes.len();
        bytes.extend(event(0, &described()));
        for at in 0..self.samples {
            let stack = if at % 10 == 9 { 2 } else { 1 };
            let mut body = Vec::new();
            // One in three threads, all of them running.
            for number in [1000 + at as i64, 1 + at as i64 % 3, stack, 1] {
                int(&mut body, number);
            }
            bytes.extend(event(SAMPLE, &body));
        }
        for at in 0..self.waits {
            let mut body = Vec::new();
            for number in [2000 + at as i64, 20_000, 1 + at as i64 % 3, 1, 2, 3, 4711] {
                int(&mut body, number);
            }
            bytes.extend(event(ENTER, &body));
        }
        let constants = bytes.len();
        bytes.extend(event(1, &constant_pools()));
        let mut header = b"FLR\0\0\x02\0\x01".to_vec();
        let (size, constants, metadata) = if self.is_finished {
            (bytes.len(), constants, metadata)
        } else {
            (0, 0, 0)
        };
        for place in [size, constants, metadata] {
            header.extend((place as u64).to_be_bytes());
        }
        let duration = if self.is_finished { 10_000_000_000 } else { 0 };
        let started = STARTED_NS + at as i64 * 10_000_000_000;
        for number in [started, duration, 0, TICKS_PER_S] {
            header.extend(number.to_be_bytes());
        }
        header.extend([0, 0, 0, 1]);
        bytes[..HEADER].copy_from_slice(&header);
        bytes
    }
}

/// An integer of variable length.
fn int(bytes: &mut Vec<u8>, value: i64) {
    let mut left = value.cast_unsigned();
    for _ in 0..8 {
        if left < 0x80 {
            break;
        }
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(3);
    int(bytes, text.len() as i64);
    bytes.extend(text.as_bytes());
}

/// An event: its size in four bytes, as the JVM writes it, its type, its body.
fn event(id: i64, body: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    int(&mut rest, id);
    rest.extend(body);
    let size = rest.len() + 4;
    let mut bytes: Vec<u8> = (0..4).map(|at| (size >> (7 * at)) as u8 | 0x80).collect();
    bytes[3] &= 0x7f;
    bytes.extend(rest);
    bytes
}

/// The description of the types.
fn described() -> Vec<u8> {
    let mut strings: Vec<String> = Vec::new();
    let mut tree = Vec::new();
    let root = Element {
        name: "root",
        attributes: Vec::new(),
        children: vec![Element {
            name: "metadata",
            attributes: Vec::new(),
            children: CLASSES
                .iter()
                .map(|(id, name, fields)| Element::of_class(*id, name, fields))
                .collect(),
        }],
    };
    root.write(&mut tree, &mut strings);
    let mut body = Vec::new();
    for number in [0, 0, 1, strings.len() as i64] {
        int(&mut body, number);
    }
    for string in &strings {
        text(&mut body, string);
    }
    body.extend(tree);
    body
}

struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Self>,
}

impl Element {
    fn of_class(id: i64, name: &str, fields: &[Field]) -> Self {
        let of_field = |(name, class, is_constant, is_array, unit): &Field| {
            let mut attributes = vec![("name", (*name).to_owned()), ("class", class.to_string())];
            if *is_constant {
                attributes.push(("constantPool", "true".to_owned()));
            }
            if *is_array {
                attributes.push(("dimension", "1".to_owned()));
            }
            let annotation = |unit: &i64| Self {
                name: "annotation",
                attributes: vec![("class", unit.to_string()), ("value", "TICKS".to_owned())],
                children: Vec::new(),
            };
            Self {
                name: "field",
                attributes,
                children: unit.iter().map(annotation).collect(),
            }
        };
        Self {
            name: "class",
            attributes: vec![("id", id.to_string()), ("name", name.to_owned())],
            children: fields.iter().map(of_field).collect(),
        }
    }

    fn write(&self, tree: &mut Vec<u8>, strings: &mut Vec<String>) {
        let mut number = |text: &str| {
            let known = strings.iter().position(|known| known == text);
            known.unwrap_or_else(|| {
                strings.push(text.to_owned());
                strings.len() - 1
            }) as i64
        };
        int(tree, number(self.name));
        int(tree, self.attributes.len() as i64);
        for (name, value) in &self.attributes {
            int(tree, number(name));
            int(tree, number(value));
        }
        int(tree, self.children.len() as i64);
        for child in &self.children {
            child.write(tree, strings);
        }
    }
}

/// The constants: three threads, two stacks, their methods and names.
fn constant_pools() -> Vec<u8> {
    let mut body = Vec::new();
    // Start, duration, no earlier checkpoint, not a flush, seven pools.
    for number in [9000, 0, 0] {
        int(&mut body, number);
    }
    body.push(0);
    int(&mut body, 7);
    let mut pool = |class: i64, count: i64, write: &mut dyn FnMut(&mut Vec<u8>, i64)| {
        int(&mut body, class);
        int(&mut body, count);
        for key in 1..=count {
            int(&mut body, key);
            write(&mut body, key);
        }
    };
    pool(THREAD, 3, &mut |body, key| {
        text(body, &format!("os-{key}"));
        int(body, 100 + key);
        text(body, &format!("worker-{key}"));
        int(body, 10 + key);
    });
    pool(STATE, 1, &mut |body, _| text(body, "STATE_RUNNABLE"));
    // Of methods by key, innermost first.
    pool(STACK, 2, &mut |body, key| {
        let methods: &[i64] = if key == 1 { &[1, 2] } else { &[3, 1, 2] };
        body.push(0);
        int(body, methods.len() as i64);
        for method in methods {
            int(body, *method);
            int(body, 40 + method);
        }
    });
    pool(METHOD, 3, &mut |body, key| {
        let (class, name) = [(1, 4), (3, 5), (4, 7)][key as usize - 1];
        int(body, class);
        int(body, name);
    });
    pool(CLASS, 4, &mut |body, key| {
        int(body, [1, 2, 3, 6][key as usize - 1]);
    });
    let names = [
        "shop/Cart",
        "shop/Ledger",
        "shop/Main",
        "add",
        "run",
        "org/apache/log4j/Category",
        "info",
    ];
    pool(SYMBOL, 7, &mut |body, key| {
        text(body, names[key as usize - 1]);
    });
    pool(STRING, 1, &mut |body, _| text(body, "never asked for"));
    body
}
