//! DNS queries from a query file, and the checks of a reply (RFC 1035; types from the IANA registry).
//!
//! The file has dnsperf's format: `name TYPE` per line, comments after `;` or `#` at the start of a line,
//! blank lines. dnsperf's dynamic updates and its per-query `+` options are refused rather than sent as
//! something else. A query is class IN, recursion desired, no EDNS, as dnsperf sends it by default.

use crate::Error;

/// Length of the fixed header.
const HEADER: usize = 12;
/// Flags of a query: recursion desired.
const RECURSION_DESIRED: [u8; 2] = [0x01, 0x00];
const CLASS_IN: u16 = 1;
/// A name takes at most this many bytes on the wire, a label of it this many (RFC 1035, 2.3.4).
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: usize = 63;

/// IANA names of the types that one can ask for.
const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("MD", 3),
    ("MF", 4),
    ("CNAME", 5),
    ("SOA", 6),
    ("MB", 7),
    ("MG", 8),
    ("MR", 9),
    ("NULL", 10),
    ("WKS", 11),
    ("PTR", 12),
    ("HINFO", 13),
    ("MINFO", 14),
    ("MX", 15),
    ("TXT", 16),
    ("RP", 17),
    ("AFSDB", 18),
    ("X25", 19),
    ("ISDN", 20),
    ("RT", 21),
    ("NSAP", 22),
    ("NSAP-PTR", 23),
    ("SIG", 24),
    ("KEY", 25),
    ("PX", 26),
    ("GPOS", 27),
    ("AAAA", 28),
    ("LOC", 29),
    ("NXT", 30),
    ("SRV", 33),
    ("NAPTR", 35),
    ("KX", 36),
    ("CERT", 37),
    ("A6", 38),
    ("DNAME", 39),
    ("APL", 42),
    ("DS", 43),
    ("SSHFP", 44),
    ("IPSECKEY", 45),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("DHCID", 49),
    ("NSEC3", 50),
    ("NSEC3PARAM", 51),
    ("TLSA", 52),
    ("SMIMEA", 53),
    ("HIP", 55),
    ("CDS", 59),
    ("CDNSKEY", 60),
    ("OPENPGPKEY", 61),
    ("CSYNC", 62),
    ("ZONEMD", 63),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("SPF", 99),
    ("NID", 104),
    ("L32", 105),
    ("L64", 106),
    ("LP", 107),
    ("EUI48", 108),
    ("EUI64", 109),
    ("ANY", 255),
    ("*", 255),
    ("URI", 256),
    ("CAA", 257),
    ("AMTRELAY", 260),
    ("TA", 32768),
    ("DLV", 32769),
];

/// Names of the response codes 0 to 15 in reports (RFC 6895), lower case.
pub(crate) const RCODES: [&str; 16] = [
    "rcode_noerror",
    "rcode_formerr",
    "rcode_servfail",
    "rcode_nxdomain",
    "rcode_notimp",
    "rcode_refused",
    "rcode_yxdomain",
    "rcode_yxrrset",
    "rcode_nxrrset",
    "rcode_notauth",
    "rcode_notzone",
    "rcode_dsotypeni",
    "rcode_12",
    "rcode_13",
    "rcode_14",
    "rcode_15",
];

/// Whether a reply with this code answers the question: the name has such data, or there is no such name (RFC 2308).
pub(crate) fn answers(rcode: u8) -> bool {
    matches!(rcode, 0 | 3)
}

/// A query, ready to be sent but for its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    wire: Vec<u8>,
}

impl Query {
    /// A query for `name` (presentation form, `\.` and `\065` escapes allowed, always absolute) and
    /// `kind` (`AAAA`, `TYPE28`, any case). The error says what is wrong.
    pub fn new(name: &str, kind: &str) -> Result<Self, String> {
        let mut wire = Vec::with_capacity(HEADER + name.len() + 6);
        wire.extend([0, 0]);
        wire.extend(RECURSION_DESIRED);
        wire.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        push_name(&mut wire, name.as_bytes())
            .map_err(|why| format!("'{name}' is not a domain name: {why}"))?;
        wire.extend(type_number(kind)?.to_be_bytes());
        wire.extend(CLASS_IN.to_be_bytes());
        Ok(Self { wire })
    }

    /// The datagram; its first two bytes are the id, zero.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

/// Reads a query file. Names need not be UTF-8, but types must.
pub fn parse(file: &[u8]) -> Result<Vec<Query>, Error> {
    let mut queries = Vec::new();
    for (index, line) in file.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b';' || line[0] == b'#' {
            continue;
        }
        let refuse = |why: String| Error::QueryFile {
            line: index + 1,
            why,
        };
        let line = std::str::from_utf8(line).map_err(|_| {
            refuse("it is not UTF-8; write other bytes of a name as \\DDD".to_owned())
        })?;
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let Some(kind) = words.next() else {
            return Err(refuse(format!(
                "'{line}' has no type; write 'name TYPE', as in 'example.org AAAA'"
            )));
        };
        if let Some(more) = words.next() {
            return Err(refuse(if more.starts_with('+') {
                format!("per-query options such as '{more}' are not supported; remove it")
            } else {
                format!("'{more}' follows the type; write 'name TYPE' only, the class is always IN")
            }));
        }
        queries.push(Query::new(name, kind).map_err(refuse)?);
    }
    if queries.is_empty() {
        return Err(Error::QueryFile {
            line: 1,
            why: "the file has no query; write one 'name TYPE' per line".to_owned(),
        });
    }
    Ok(queries)
}

fn type_number(kind: &str) -> Result<u16, String> {
    if let Some((_, number)) = TYPES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(kind))
    {
        return Ok(*number);
    }
    let generic = kind
        .get(..4)
        .filter(|word| word.eq_ignore_ascii_case("TYPE"));
    generic.and_then(|_| kind[4..].parse().ok()).ok_or_else(|| {
        format!("'{kind}' is not a DNS type; write it as IANA does (A, AAAA, HTTPS) or as TYPE123")
    })
}

fn push_name(wire: &mut Vec<u8>, name: &[u8]) -> Result<(), String> {
    let start = wire.len();
    if name != b"." {
        let mut label = Vec::new();
        let mut at = 0;
        while at < name.len() {
            match name[at] {
                b'.' => push_label(wire, &mut label)?,
                b'\\' => {
                    let (byte, length) = unescape(&name[at + 1..])?;
                    label.push(byte);
                    at += length;
                }
                byte => label.push(byte),
            }
            at += 1;
        }
        // A name may or may not end with its dot.
        if name.last() != Some(&b'.') || !label.is_empty() {
            push_label(wire, &mut label)?;
        }
    }
    wire.push(0);
    if wire.len() - start > LONGEST_NAME {
        return Err(format!("longer than {LONGEST_NAME} bytes"));
    }
    Ok(())
}

fn push_label(wire: &mut Vec<u8>, label: &mut Vec<u8>) -> Result<(), String> {
    if label.is_empty() {
        return Err("empty label".to_owned());
    }
    if label.len() > LONGEST_LABEL {
        return Err(format!("label longer than {LONGEST_LABEL} bytes"));
    }
    wire.push(label.len() as u8);
    wire.append(label);
    Ok(())
}

/// The text after a backslash: three digits, or the character itself.
fn unescape(rest: &[u8]) -> Result<(u8, usize), String> {
    match rest {
        [a, b, c, ..] if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit() => {
            let number = [a, b, c]
                .iter()
                .fold(0_u16, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
            let byte =
                u8::try_from(number).map_err(|_| format!("\\{number} does not fit in a byte"))?;
            Ok((byte, 3))
        }
        [byte, ..] if !byte.is_ascii_digit() => Ok((*byte, 1)),
        _ => Err("a backslash needs a character or three digits after it".to_owned()),
    }
}

/// What a datagram means to a load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer to the query.
    Answer {
        /// Response code, 0 to 15.
        rcode: u8,
        /// The TC bit: the rest must be asked for over TCP.
        cut: bool,
    },
    /// Not a response, or one to another question.
    Foreign,
}

/// The id of a reply; absent where the datagram is too short to be DNS.
#[inline]
pub fn id(datagram: &[u8]) -> Option<u16> {
    (datagram.len() >= HEADER).then(|| u16::from_be_bytes([datagram[0], datagram[1]]))
}

/// Whether `datagram`, whose id has matched, answers `query`: a response that repeats the question.
/// A server that refuses may leave the question out.
#[inline]
pub fn check(datagram: &[u8], query: &Query) -> Reply {
    let Some((header, rest)) = datagram.split_at_checked(HEADER) else {
        return Reply::Foreign;
    };
    let rcode = header[3] & 0x0f;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    let asked = &query.wire[HEADER..];
    // Servers repeat the letters as they came; older ones in lower case. Type and class are no letters.
    let (name, kind) = asked.split_at(asked.len() - 4);
    let same = questions == 1
        && rest.get(..asked.len()).is_some_and(|echo| {
            echo.ends_with(kind) && echo[..name.len()].eq_ignore_ascii_case(name)
        });
    if header[2] & 0x80 != 0 && (same || questions == 0 && rcode != 0) {
        Reply::Answer {
            rcode,
            cut: header[2] & 0x02 != 0,
        }
    } else {
        Reply::Foreign
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(file: &str) -> String {
        parse(file.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_query_file_of_dnsperf_is_read() {
        let file = "; a comment\n# another\n\nexample.org A\r\n  www.Example.org.\tAAAA  \n. ns\nx TYPE65280\n";
        let queries = parse(file.as_bytes()).unwrap();
        assert_eq!(queries.len(), 4);
        assert_eq!(
            queries[0].wire(),
            b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01"
        );
        assert!(
            queries[1]
                .wire()
                .ends_with(b"\x03www\x07Example\x03org\0\0\x1c\0\x01")
        );
        assert_eq!(&queries[2].wire()[HEADER..], b"\0\0\x02\0\x01");
        assert!(queries[3].wire().ends_with(&[0xff, 0, 0, 1]));
    }

    #[test]
    fn escapes_name_any_byte() {
        let query = Query::new(r"a\.b\000\255.c", "A").unwrap();
        assert_eq!(&query.wire()[HEADER..], b"\x05a.b\0\xff\x01c\0\0\x01\0\x01");
        for bad in [r"a\", r"a\25", r"a\256", "a..b", ".a", ""] {
            assert!(Query::new(bad, "A").is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_of_names_are_kept() {
        let label = "a".repeat(63);
        assert!(Query::new(&format!("{label}.{label}.{label}.{}", "a".repeat(61)), "A").is_ok());
        assert!(Query::new(&format!("{label}.{label}.{label}.{}", "a".repeat(62)), "A").is_err());
        assert!(Query::new(&"a".repeat(64), "A").is_err());
    }

    #[test]
    fn a_refusal_names_the_line_and_the_remedy() {
        assert!(refusal("a A\n\nb BOGUS\n").contains("line 3"));
        assert!(refusal("b BOGUS\n").contains("'BOGUS' is not a DNS type"));
        assert!(refusal("a\n").contains("has no type"));
        assert!(refusal("a A +dnssec\n").contains("not supported"));
        assert!(refusal("a A IN\n").contains("class is always IN"));
        assert!(refusal("a TYPE70000\n").contains("TYPE123"));
        assert!(refusal("; nothing\n").contains("has no query"));
    }

    #[test]
    fn a_reply_must_be_a_response_to_the_same_question() {
        let query = Query::new("Example.org", "A").unwrap();
        let mut reply = query.wire().to_ascii_lowercase();
        assert_eq!(check(&reply, &query), Reply::Foreign, "still a query");
        reply[2] |= 0x82;
        reply[3] |= 3;
        let answer = Reply::Answer {
            rcode: 3,
            cut: true,
        };
        assert_eq!(check(&reply, &query), answer);
        for other in [
            Query::new("example.net", "A"),
            Query::new("example.org", "NS"),
        ] {
            assert_eq!(check(&reply, &other.unwrap()), Reply::Foreign);
        }
        // Types 65 and 97 look like one letter in two cases.
        let https = Query::new("example.org", "HTTPS").unwrap();
        let mut other = Query::new("example.org", "TYPE97").unwrap().wire().to_vec();
        other[2] |= 0x80;
        assert_eq!(check(&other, &https), Reply::Foreign);
        reply.truncate(HEADER);
        assert_eq!(
            check(&reply, &query),
            Reply::Foreign,
            "the question is cut off"
        );
        reply[5] = 0;
        assert_eq!(
            check(&reply, &query),
            answer,
            "an error without its question"
        );
    }

    #[test]
    fn types_are_sorted_by_number_and_named_once() {
        assert!(
            TYPES
                .windows(2)
                .all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 != pair[1].0)
        );
    }

    proptest! {
        #[test]
        fn no_file_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_name_panics_or_breaks_the_limits(name in r"[a-z.\\0-9é]{0,80}", kind in "[A-Z0-9é]{0,8}") {
            if let Ok(query) = Query::new(&name, &kind) {
                prop_assert!(query.wire().len() <= HEADER + LONGEST_NAME + 4);
            }
        }

        #[test]
        fn no_reply_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let query = Query::new("example.org", "A").unwrap();
            let _ = (id(&bytes), check(&bytes, &query));
        }
    }
}
