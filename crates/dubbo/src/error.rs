//! What is wrong with a frame, a hessian2 body, a Java type or an argument.

/// Why bytes are not decoded, or a request is not encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A frame begins with other bytes than `0xdabb`. The stream cannot be read on: where the next frame begins is unknown.
    #[error(
        "byte {at} of the stream begins no Dubbo frame: found {}, expected da bb; the peer speaks another protocol, or the stream is damaged",
        hex(&found[..*count])
    )]
    Magic {
        /// Bytes of the stream before the frame.
        at: u64,
        /// The bytes in the place of the magic; only `count` of them had arrived.
        found: [u8; 2],
        /// 1 or 2.
        count: usize,
    },
    /// A header claims a body above the limit. The stream cannot be read on.
    #[error(
        "the frame at byte {at} of the stream (id {id}) claims a body of {length} bytes, the limit is {limit}; raise the limit, or the header is damaged"
    )]
    TooLong {
        /// Bytes of the stream before the frame.
        at: u64,
        /// Request id of the frame.
        id: u64,
        /// Claimed length of the body in bytes.
        length: u32,
        /// Highest length that is accepted, in bytes.
        limit: u32,
    },
    /// A body in another serialization than hessian2.
    #[error(
        "the body is in serialization {0}, only hessian2 (2) is read; set `serialization=hessian2` on the service"
    )]
    Serialization(u8),
    /// A body is not valid hessian2, or is no request, reply or event.
    #[error("byte {at} of the body: {problem}")]
    Body {
        /// Offset of the value in question within the body.
        at: usize,
        /// What is wrong there.
        problem: Problem,
    },
    /// A body that is longer than the length field of a frame can say.
    #[error("the body has {0} bytes, and a frame carries at most 2147483647")]
    Oversized(usize),
    /// A text that names no Java type.
    #[error("{text:?} names no Java type: {why}")]
    JavaType {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another number of arguments than of parameter types.
    #[error("{given} arguments for {expected} parameter types")]
    ArgumentCount {
        /// Arguments given.
        given: usize,
        /// Parameter types given.
        expected: usize,
    },
    /// A JSON value that does not fit its Java type.
    #[error("{path}: {why}")]
    Argument {
        /// Which argument, and which part of it: `argument 2, .user.tags[3]`. The first is argument 1.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What is wrong with a hessian2 value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The body ends within a value.
    #[error("the body ends within a value")]
    Truncated,
    /// A byte that begins no value.
    #[error("0x{0:02x} begins no value")]
    Tag(u8),
    /// A value of another kind than the place needs.
    #[error("expected {expected}, found a value that begins with 0x{found:02x}")]
    Expected {
        /// The kind that the place needs.
        expected: &'static str,
        /// First byte of the value.
        found: u8,
    },
    /// A byte that no string contains in this place: strings hold UTF-16 units as one to three bytes each.
    #[error("0x{0:02x} is not a part of a string's encoding")]
    Text(u8),
    /// A length below zero.
    #[error("the length is {0}")]
    Length(i32),
    /// Values are nested deeper than [`crate::Limits::depth`].
    #[error("values are nested deeper than {0}")]
    Depth(usize),
    /// There are more values than [`crate::Limits::values`].
    #[error("more than {0} values")]
    Count(usize),
    /// An object of a class that is not defined before it.
    #[error("class {index} of {defined} defined")]
    Class {
        /// Index of the class.
        index: i32,
        /// Classes defined so far.
        defined: usize,
    },
    /// A reference to a type name that is not written before it.
    #[error("type {index} of {defined} written")]
    Type {
        /// Index of the type name.
        index: i32,
        /// Type names so far.
        defined: usize,
    },
    /// A reference to a list, map or object that does not begin before it.
    #[error("reference {index} of {begun} lists, maps and objects")]
    Reference {
        /// Index of the referenced value.
        index: i32,
        /// Lists, maps and objects begun so far.
        begun: usize,
    },
    /// A reply that begins with none of its six flags.
    #[error("the flag of the reply is {0}, known are 0 to 5")]
    Flag(i32),
    /// Bytes behind the last value.
    #[error("{0} bytes follow the last value")]
    Trailing(usize),
    /// The parameter descriptor of a request is not one of the JVM.
    #[error("the parameter descriptor is malformed")]
    Descriptor,
}

fn hex(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = bytes
        .iter()
        .filter(|byte| byte.is_ascii_graphic())
        .map(|byte| char::from(*byte))
        .collect();
    if text.len() == bytes.len() {
        format!("{} ({text:?})", hex.join(" "))
    } else {
        hex.join(" ")
    }
}
