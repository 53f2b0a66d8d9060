//! A tiny authoritative DNS responder for the zone `lab.test` (RFC 1034, 1035; negative answers RFC 2308; EDNS
//! RFC 6891; ANY RFC 8482).
//!
//!     cargo run --release -p rungwise-serve --example dns -- 127.0.0.1:5300
//!     dig @127.0.0.1 -p 5300 www.lab.test AAAA
//!
//! The question is read once, front to back; compression pointers have no place in it and are refused, so no
//! message can make the parser go round. A reply never exceeds 1232 bytes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rungwise_serve::udp::{Config, Server};

const ZONE: &str = "lab.test";
/// Seconds that answers, positive and negative, may be kept.
const TTL: u32 = 300;
/// Largest reply, and what we say we take: what fits a path of 1280 bytes (DNS flag day 2020).
const MOST: usize = 1232;
/// Largest reply to somebody who does not speak EDNS (RFC 1035, 4.2.1).
const PLAIN: usize = 512;
/// Records carried in a query's other sections that are looked through for EDNS; more is an error.
const MOST_RECORDS: u16 = 8;

/// What a name has.
enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Txt(&'static [&'static str]),
    Ns(&'static str),
    Soa,
}

const LONG: &str = "a string of exactly one hundred bytes, of which eight make an answer that does not fit plain DNS...";

/// The zone. Names in lower case, without the last dot.
const RECORDS: &[(&str, Data)] = &[
    ("lab.test", Data::Soa),
    ("lab.test", Data::Ns("ns.lab.test")),
    ("ns.lab.test", Data::A(Ipv4Addr::new(192, 0, 2, 1))),
    ("www.lab.test", Data::A(Ipv4Addr::new(192, 0, 2, 10))),
    ("www.lab.test", Data::A(Ipv4Addr::new(192, 0, 2, 11))),
    (
        "www.lab.test",
        Data::Aaaa(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10)),
    ),
    (
        "text.lab.test",
        Data::Txt(&["v=1", "two strings; one record"]),
    ),
    (
        "long.lab.test",
        Data::Txt(&[LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG]),
    ),
    ("a.deep.lab.test", Data::A(Ipv4Addr::new(192, 0, 2, 20))),
];

const ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const OPT: u16 = 41;
/// Where the header's flags hold the kind of message; 0 is a query.
const OPCODE: u16 = 0x7800;

/// Response codes (RFC 1035, 4.1.1; BADVERS RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Code {
    NoError = 0,
    FormErr = 1,
    NxDomain = 3,
    NotImp = 4,
    Refused = 5,
    BadVers = 16,
}

impl Data {
    fn kind(&self) -> u16 {
        match self {
            Self::A(_) => 1,
            Self::Ns(_) => 2,
            Self::Soa => 6,
            Self::Txt(_) => 16,
            Self::Aaaa(_) => 28,
        }
    }

    fn write(&self, out: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::A(ip) => out.bytes(&ip.octets()),
            Self::Aaaa(ip) => out.bytes(&ip.octets()),
            Self::Ns(name) => out.name(name),
            Self::Txt(strings) => strings.iter().try_for_each(|text| {
                out.bytes(&[u8::try_from(text.len()).ok()?])?;
                out.bytes(text.as_bytes())
            }),
            Self::Soa => {
                out.name("ns.lab.test")?;
                out.name("hostmaster.lab.test")?;
                // Serial, refresh, retry, expire, minimum: the last bounds negative answers.
                [1, 3600, 600, 86_400, TTL]
                    .iter()
                    .try_for_each(|number| out.u32(*number))
            }
        }
    }
}

/// Reads forward, never beyond the end, never back.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Passes over a name: labels, ended by the root or a pointer (which is not followed).
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match self.take(1)?[0] {
                0 => return Some(()),
                length @ 1..=63 => drop(self.take(length.into())?),
                192.. => return self.take(1).map(drop),
                64..=191 => return None,
            }
        }
    }
}

/// Writes forward into a bounded space.
struct Writer<'a> {
    space: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at + bytes.len();
        self.space.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    fn u16(&mut self, number: u16) -> Option<()> {
        self.bytes(&number.to_be_bytes())
    }

    fn u32(&mut self, number: u32) -> Option<()> {
        self.bytes(&number.to_be_bytes())
    }

    fn name(&mut self, name: &str) -> Option<()> {
        for label in name.split('.') {
            self.bytes(&[u8::try_from(label.len()).ok()?])?;
            self.bytes(label.as_bytes())?;
        }
        self.bytes(&[0])
    }

    /// A record whose owner was written at `owner`.
    fn record(&mut self, owner: u16, data: &Data) -> Option<()> {
        self.u16(0xc000 | owner)?;
        self.u16(data.kind())?;
        self.u16(CLASS_IN)?;
        self.u32(TTL)?;
        let length_at = self.at;
        self.u16(0)?;
        data.write(self)?;
        let length = u16::try_from(self.at - length_at - 2).ok()?;
        self.space[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        Some(())
    }
}

/// The one question of a query.
struct Question<'a> {
    /// As asked, upper and lower case kept: some resolvers check that (draft-vixie-dnsext-dns0x20).
    wire: &'a [u8],
    /// In lower case, without the last dot.
    name: ([u8; 255], usize),
    kind: u16,
    class: u16,
}

impl<'a> Question<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let start = reader.at;
        let (mut name, mut length) = ([0; 255], 0);
        loop {
            let label = match reader.take(1)?[0] {
                0 => break,
                length @ 1..=63 => reader.take(length.into())?,
                _ => return None,
            };
            // A dot within a label is legal and would look like two labels.
            if label.contains(&b'.') {
                return None;
            }
            if length > 0 {
                *name.get_mut(length)? = b'.';
                length += 1;
            }
            name.get_mut(length..length + label.len())?
                .copy_from_slice(label);
            length += label.len();
        }
        // 255 bytes with length bytes and root (RFC 1035, 2.3.4).
        if reader.at - start > 255 {
            return None;
        }
        name.make_ascii_lowercase();
        let (kind, class) = (reader.u16()?, reader.u16()?);
        Some(Self {
            wire: &reader.bytes[start..reader.at],
            name: (name, length),
            kind,
            class,
        })
    }

    fn name(&self) -> &[u8] {
        &self.name.0[..self.name.1]
    }

    /// Bytes from here to the zone's name within the question: nothing outside the zone.
    fn zone_at(&self) -> Option<usize> {
        let rest = self.name().strip_suffix(ZONE.as_bytes())?;
        (rest.is_empty() || rest.ends_with(b".")).then_some(rest.len())
    }
}

/// What a query says about EDNS.
#[derive(Clone, Copy)]
struct Edns {
    /// Largest reply the asker takes.
    size: u16,
    version: u8,
    /// Wants DNSSEC records; copied (RFC 3225), though there are none.
    dnssec: bool,
}

impl Edns {
    /// Looks through `records` records; an error if they are cut short or hold two OPT.
    fn find(reader: &mut Reader<'_>, records: u16) -> Result<Option<Self>, Malformed> {
        let mut found = None;
        for _ in 0..records {
            if let Some(edns) = Self::read(reader)? {
                if found.is_some() {
                    return Err(Malformed);
                }
                found = Some(edns);
            }
        }
        Ok(found)
    }

    /// Reads one record, which may be an OPT.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let root = reader.bytes.get(reader.at) == Some(&0);
        reader.skip_name().ok_or(Malformed)?;
        let fixed = reader.take(10).ok_or(Malformed)?;
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        reader.take(half(8).into()).ok_or(Malformed)?;
        if half(0) != OPT {
            return Ok(None);
        }
        // The owner of an OPT is the root; its class is a size, its TTL high code, version and flags.
        if !root {
            return Err(Malformed);
        }
        Ok(Some(Self {
            size: half(2),
            version: fixed[5],
            dnssec: fixed[6] & 0x80 != 0,
        }))
    }
}

/// Records that end too early or contradict each other.
struct Malformed;

/// Answers a query; silent on what is no query at all.
pub(crate) fn answer(request: &[u8], reply: &mut [u8]) -> Option<usize> {
    let mut reader = Reader {
        bytes: request,
        at: 0,
    };
    let id = reader.u16()?;
    let flags = reader.u16()?;
    let [questions, answers, authorities, additionals] =
        [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
    // A reply: answering it could go on for ever.
    if flags & 0x8000 != 0 {
        return None;
    }
    let mut respond =
        |code, question: Option<&Question<'_>>, edns| write(reply, id, flags, code, question, edns);
    let records = [answers, authorities, additionals]
        .iter()
        .fold(0_u16, |sum, count| sum.saturating_add(*count));
    // Only queries: what else there is may have another body, of which we read no more than we understand.
    let broken = if flags & OPCODE == 0 {
        Code::FormErr
    } else {
        Code::NotImp
    };
    if questions != 1 || records > MOST_RECORDS {
        return respond(broken, None, None);
    }
    let Some(question) = Question::read(&mut reader) else {
        return respond(broken, None, None);
    };
    let Ok(edns) = Edns::find(&mut reader, records) else {
        return respond(broken, Some(&question), None);
    };
    let code = if broken == Code::NotImp {
        Code::NotImp
    } else if edns.is_some_and(|edns| edns.version != 0) {
        Code::BadVers
    } else if ![CLASS_IN, ANY].contains(&question.class) || question.zone_at().is_none() {
        Code::Refused
    } else if RECORDS
        .iter()
        .any(|(name, _)| is_at_or_below(name.as_bytes(), question.name()))
    {
        Code::NoError
    } else {
        Code::NxDomain
    };
    respond(code, Some(&question), edns)
}

/// Whether `name` is `ancestor` or lies below it: a name exists when something below it does (RFC 4592, 2.2.2).
fn is_at_or_below(name: &[u8], ancestor: &[u8]) -> bool {
    name.strip_suffix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"."))
}

/// Writes the reply; if the records do not fit, without them and marked as truncated.
fn write(
    reply: &mut [u8],
    id: u16,
    flags: u16,
    code: Code,
    question: Option<&Question<'_>>,
    edns: Option<Edns>,
) -> Option<usize> {
    let size = edns.map_or(PLAIN, |edns| usize::from(edns.size).clamp(PLAIN, MOST));
    let room = size.min(reply.len());
    for truncated in [false, true] {
        let mut out = Writer {
            space: &mut reply[..room],
            at: 12,
        };
        if let Some(counts) = sections(&mut out, code, question, edns, truncated) {
            let length = out.at;
            out.at = 0;
            out.u16(id)?;
            // QR, the opcode, AA where we speak for the zone, TC, RD as asked, and the low bits of the code.
            let ours = matches!(code, Code::NoError | Code::NxDomain);
            let low = code as u16 & 15;
            out.u16(
                0x8000 | flags & 0x7900 | u16::from(ours) << 10 | u16::from(truncated) << 9 | low,
            )?;
            counts.iter().try_for_each(|count| out.u16(*count))?;
            return Some(length);
        }
    }
    None
}

/// Writes what follows the header and returns the four counts; nothing if it does not fit.
fn sections(
    out: &mut Writer<'_>,
    code: Code,
    question: Option<&Question<'_>>,
    edns: Option<Edns>,
    truncated: bool,
) -> Option<[u16; 4]> {
    let mut counts = [0; 4];
    if let Some(question) = question {
        out.bytes(question.wire)?;
        counts[0] = 1;
        if !truncated
            && let (Code::NoError | Code::NxDomain, Some(zone_at)) = (code, question.zone_at())
        {
            // ANY gets the first type there is, not everything: that would be an amplifier.
            let kind = if question.kind == ANY {
                first_kind(question)
            } else {
                Some(question.kind)
            };
            for (name, data) in RECORDS {
                if name.as_bytes() == question.name() && Some(data.kind()) == kind {
                    out.record(12, data)?;
                    counts[1] += 1;
                }
            }
            if counts[1] == 0 {
                out.record(12 + u16::try_from(zone_at).ok()?, &Data::Soa)?;
                counts[2] = 1;
            }
        }
    }
    if let Some(edns) = edns {
        // The root, OPT, our size; then high bits of the code, version 0, flags; no options.
        out.bytes(&[0])?;
        out.u16(OPT)?;
        out.u16(MOST as u16)?;
        out.bytes(&[(code as u16 >> 4) as u8, 0, u8::from(edns.dnssec) << 7, 0])?;
        out.u16(0)?;
        counts[3] = 1;
    }
    Some(counts)
}

fn first_kind(question: &Question<'_>) -> Option<u16> {
    RECORDS
        .iter()
        .find(|(name, _)| name.as_bytes() == question.name())
        .map(|(_, data)| data.kind())
}

/// The handler of a worker.
pub(crate) fn handler() -> impl FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> {
    |request, _peer, reply| answer(request, reply)
}

#[allow(dead_code, reason = "the tests take this file in as a module")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:5300".to_owned());
    let config = Config {
        workers: 2,
        reuseport: true,
        ..Config::new(listen.parse()?)
    };
    let _server = Server::start(&config, |_worker| handler())?;
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(label.len() as u8);
            query.extend(label.as_bytes());
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query
    }

    fn with_edns(mut query: Vec<u8>, size: u16, version: u8) -> Vec<u8> {
        query[11] = 1;
        query.extend([0, 0, 41]);
        query.extend(size.to_be_bytes());
        query.extend([0, version, 0x80, 0, 0, 0]);
        query
    }

    fn reply(query: &[u8]) -> Vec<u8> {
        let mut reply = vec![0xee; 4096];
        let length = answer(query, &mut reply).expect("a reply");
        reply.truncate(length);
        reply
    }

    fn code(reply: &[u8]) -> u8 {
        reply[3] & 15
    }

    fn counts(reply: &[u8]) -> [u8; 4] {
        [reply[5], reply[7], reply[9], reply[11]]
    }

    #[test]
    fn an_address_is_answered_with_authority_and_the_question_as_asked() {
        let query = query("wWw.LAB.test", 1);
        let reply = reply(&query);
        assert_eq!(
            reply[..4],
            [0xab, 0xcd, 0x85, 0x00],
            "id, QR AA RD, no error"
        );
        assert_eq!(counts(&reply), [1, 2, 0, 0]);
        assert_eq!(reply[12..query.len()], query[12..]);
        let first = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 10];
        assert_eq!(reply[query.len()..][..16], first);
    }

    #[test]
    fn what_is_not_there_is_denied_with_the_zones_soa() {
        let denied = reply(&query("nobody.lab.test", 1));
        assert_eq!((code(&denied), counts(&denied)), (3, [1, 0, 1, 0]));
        let no_data = reply(&query("ns.lab.test", 28));
        assert_eq!((code(&no_data), counts(&no_data)), (0, [1, 0, 1, 0]));
        let between = reply(&query("deep.lab.test", 1));
        assert_eq!(
            (code(&between), counts(&between)),
            (0, [1, 0, 1, 0]),
            "something lies below"
        );
        // The owner of the SOA is a pointer to `lab.test` within the question.
        let query_length = query("ns.lab.test", 28).len();
        assert_eq!(no_data[query_length..query_length + 2], [0xc0, 12 + 3]);
    }

    #[test]
    fn other_zones_and_classes_are_refused() {
        for name in ["example.org", "xlab.test", "test"] {
            assert_eq!(code(&reply(&query(name, 1))), 5, "{name}");
        }
        let mut chaos = query("www.lab.test", 1);
        *chaos.last_mut().unwrap() = 3;
        assert_eq!(code(&reply(&chaos)), 5);
    }

    #[test]
    fn malformed_queries_get_an_error_of_their_own() {
        let mut notify = query("www.lab.test", 1);
        notify[2] = 4 << 3;
        assert_eq!(code(&reply(&notify)), 4);
        let mut two = query("www.lab.test", 1);
        two[5] = 2;
        assert_eq!(code(&reply(&two)), 1);
        // A pointer to itself.
        let mut looping = query("www.lab.test", 1);
        looping[12..14].copy_from_slice(&[0xc0, 12]);
        assert_eq!(code(&reply(&looping)), 1);
        let whole = query("www.lab.test", 1);
        for length in 12..whole.len() {
            assert_eq!(code(&reply(&whole[..length])), 1, "{length} bytes");
        }
        let label = "x".repeat(63);
        assert_eq!(
            code(&reply(&query(&[label.as_str(); 4].join("."), 1))),
            1,
            "256 bytes of name"
        );
    }

    #[test]
    fn a_reply_and_a_fragment_of_a_header_get_no_answer() {
        let mut own = query("www.lab.test", 1);
        own[2] |= 0x80;
        let mut reply = [0; 512];
        assert_eq!(answer(&own, &mut reply), None);
        assert_eq!(answer(&query("www.lab.test", 1)[..11], &mut reply), None);
    }

    #[test]
    fn edns_is_answered_with_edns_and_an_unknown_version_with_badvers() {
        let answered = reply(&with_edns(query("www.lab.test", 1), 4096, 0));
        assert_eq!((code(&answered), counts(&answered)), (0, [1, 2, 0, 1]));
        let opt = [0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0];
        assert_eq!(
            answered[answered.len() - 11..],
            opt,
            "1232 bytes, DO copied"
        );
        let bad = reply(&with_edns(query("www.lab.test", 1), 4096, 1));
        assert_eq!(
            (code(&bad), bad[bad.len() - 6], counts(&bad)),
            (0, 1, [1, 0, 0, 1])
        );
        let mut twice = with_edns(query("www.lab.test", 1), 4096, 0);
        let opt = twice[twice.len() - 11..].to_vec();
        twice.extend(opt);
        twice[11] = 2;
        assert_eq!(code(&reply(&twice)), 1);
    }

    #[test]
    fn what_does_not_fit_is_truncated_and_fits_with_edns() {
        let plain = reply(&query("long.lab.test", 16));
        assert_eq!((plain[2] & 2, counts(&plain)), (2, [1, 0, 0, 0]));
        let large = reply(&with_edns(query("long.lab.test", 16), 1232, 0));
        assert_eq!((large[2] & 2, counts(&large)), (0, [1, 1, 0, 1]));
        assert!(large.len() > 800 && large.len() <= 1232);
    }

    #[test]
    fn any_gets_one_type() {
        let reply = reply(&query("lab.test", ANY));
        assert_eq!(counts(&reply), [1, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_within_bounds(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut reply = [0; 4096];
            if let Some(length) = answer(&bytes, &mut reply) {
                prop_assert!(length <= MOST);
            }
            let mut query = with_edns(query("www.lab.test", 1), 1232, 0);
            for (at, byte) in flips {
                let at = at.index(query.len());
                query[at] = byte;
            }
            if let Some(length) = answer(&query, &mut reply) {
                prop_assert!(length <= MOST);
            }
        }
    }
}
