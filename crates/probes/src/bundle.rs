//! A bundle: a capture as one file, or as a folder that people can read and write.
//!
//! The file is gzip of one JSON document. No path in it is ever opened or written: paths are names in a map,
//! so an untrusted bundle cannot reach outside, and its size is limited while it is unpacked.
//!
//! The folder is a host in texts, see [`host_text`](crate::host_text).

use std::io::{self, BufReader, BufWriter, Read};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rungwise_host::files;
use rungwise_model::kernel::Answer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Moment, Raw, Reply};
use crate::weight::Weighed;
use crate::{Error, Result, host_text};

/// Format of the document. Fields may be added; a new number means that older readers cannot read it.
const FORMAT: u32 = 1;

/// Limit of the unpacked size: four samples of a host with 100,000 sockets take about half of it.
const LIMIT: u64 = 512 << 20;

/// Limit of entries, see [`Weighed`]: four samples of a host with 100,000 sockets take three quarters of it. An entry takes up
/// to 100 bytes of memory.
const ENTRIES: u64 = 4_000_000;

/// The longest text: `/proc/interrupts` of 1,024 CPUs and 4,000 interrupts has 45 MiB, and its numbers take several times that.
const LONGEST_TEXT: u64 = 64 << 20;

/// Limit of the unpacked size as a multiple of the packed size: captures of hosts unpack to 8 times theirs (Linux 6.18), one of
/// 100,000 idle connections to 37 times. A guess with room; zeros unpack to a thousand times theirs.
const TIMES: u64 = 128;

/// A small bundle may always unpack to this much.
const SMALL: u64 = 48 << 20;

/// The most CPUs: `NR_CPUS` of Linux 6.18 is at most 8,192 (arch/x86/Kconfig).
const CPUS: usize = 8192;

/// Limit of network devices: twice the number seen on a host with many containers; a generous guess.
const DEVICES: usize = 20_000;

/// The longest accepted window: thirty years.
const LONGEST_S: f64 = 1e9;

/// File name in every example of `rungwise capture -o`.
const USUAL: &str = "host.rungwise";

/// The two bytes that gzip begins with (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The document of a bundle.
#[derive(Serialize, Deserialize)]
struct Document<C> {
    /// Says what this is, and its format.
    rungwise_capture: u32,
    /// Version of the program that wrote it.
    version: String,
    capture: C,
}

/// Read first, to distinguish a later format from a broken file.
#[derive(Deserialize)]
struct Head {
    rungwise_capture: Option<u32>,
}

/// Whether these first bytes of a file may be a bundle's.
pub fn looks_like(first: &[u8]) -> bool {
    is_packed(first) || first.starts_with(br#"{"rungwise_capture""#)
}

/// A capture as the bytes of a bundle; refused if it is larger than [`read`] accepts.
pub fn pack(capture: &Capture) -> Result<Vec<u8>> {
    pack_within(capture, LIMIT)
}

fn pack_within(capture: &Capture, limit: u64) -> Result<Vec<u8>> {
    let document = Document {
        rungwise_capture: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capture,
    };
    // In pieces, not token by token: the packer is slow on few bytes. Never as a whole, which is 1.3 KB for each TCP socket.
    let packer = Weighed::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut text = BufWriter::with_capacity(64 << 10, packer);
    let written = serde_json::to_writer(&mut text, &document)
        .map_err(io::Error::from)
        .and_then(|()| text.into_inner().map_err(io::IntoInnerError::into_error))
        .and_then(|weighed| {
            let too_many = too_many(&weighed);
            Ok((weighed.to.finish()?, weighed.bytes, too_many))
        });
    let (packed, bytes, too_many) = written.map_err(|error| Error::NotABundle {
        path: "memory".into(),
        why: error.to_string(),
    })?;
    let limit = most(&packed, limit);
    if bytes > limit {
        return Err(Error::TooMuch { bytes, limit });
    }
    match too_many {
        Some(what) => Err(Error::TooManySeen { what }),
        None => Ok(packed),
    }
}

/// What a document has too much of.
fn too_many<W>(weighed: &Weighed<W>) -> Option<String> {
    let (entries, longest) = (weighed.entries, weighed.longest);
    if entries > ENTRIES {
        Some(format!("more than {ENTRIES} entries"))
    } else {
        let most = LONGEST_TEXT >> 20;
        (longest > LONGEST_TEXT).then(|| format!("a text of more than {most} MiB"))
    }
}

/// Limit of the unpacked size for these bytes.
fn most(packed: &[u8], limit: u64) -> u64 {
    limit.min(SMALL.max(TIMES * packed.len() as u64))
}

/// Reads a bundle: a file, or a folder that is a host in texts or contains a file with the usual name of a capture.
pub fn read(path: &Path) -> Result<Capture> {
    if files::exists(&path.join(host_text::ABOUT)) {
        return check(host_text::read(path)?, path);
    }
    if files::is_folder(path) {
        let inside = path.join(USUAL);
        // A folder may be a stranger's: its pipe has no end, and its link leads anywhere.
        return if files::is_plain(&inside) {
            unpack(&files::read_at_most(&inside, LIMIT + 1)?, &inside)
        } else {
            Err(Error::Folder {
                path: path.to_owned(),
            })
        };
    }
    // A packed capture is never larger than an unpacked one; a device may have no end.
    unpack(&files::read_at_most(path, LIMIT + 1)?, path)
}

/// Reads the bytes of a bundle; `path` is for messages.
pub fn unpack(bytes: &[u8], path: &Path) -> Result<Capture> {
    unpack_within(bytes, path, LIMIT)
}

fn unpack_within(bytes: &[u8], path: &Path, limit: u64) -> Result<Capture> {
    let not_a_bundle = |why: String| Error::NotABundle {
        path: path.to_owned(),
        why,
    };
    let limit = most(bytes, limit);
    // Unpacked into nothing first: what is refused takes no memory, and what is read is never there as a whole.
    let weighed = weighed(bytes, limit + 1)
        .map_err(|error| not_a_bundle(format!("it is damaged or cut short: {error}")))?;
    if weighed.bytes > limit {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    if let Some(what) = too_many(&weighed) {
        return Err(Error::TooMany {
            path: path.to_owned(),
            what,
        });
    }
    let head: Head = parsed(bytes)
        .map_err(|error| not_a_bundle(format!("it is not a JSON document of rungwise: {error}")))?;
    match head.rungwise_capture {
        None => Err(not_a_bundle("it lacks the marker of a capture".to_owned())),
        Some(found) if found > FORMAT => Err(Error::TooNew {
            path: path.to_owned(),
            found,
            known: FORMAT,
        }),
        Some(_) => {
            let document: Document<Capture> =
                parsed(bytes).map_err(|error| not_a_bundle(error.to_string()))?;
            check(document.capture, path)
        }
    }
}

/// The document of a bundle. The reader is of a known type: behind a pointer each byte would be a call.
fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    if is_packed(bytes) {
        serde_json::from_reader(BufReader::with_capacity(64 << 10, GzDecoder::new(bytes)))
    } else {
        serde_json::from_slice(bytes)
    }
}

/// Its unpacked size, up to a limit; nothing is kept.
fn weighed(bytes: &[u8], most: u64) -> io::Result<Weighed<io::Sink>> {
    let mut weighed = Weighed::new(io::sink());
    if is_packed(bytes) {
        io::copy(&mut GzDecoder::new(bytes).take(most), &mut weighed)?;
    } else {
        io::copy(&mut bytes.take(most), &mut weighed)?;
    }
    Ok(weighed)
}

fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// More CPUs or devices than any machine has: probes compare each with the others.
fn outgrown(moment: &Moment) -> Option<String> {
    let cpus = match moment.files.get("/proc/stat") {
        Some(Raw::Text(text)) => text.lines().filter(|line| line.starts_with("cpu")).count(),
        _ => 0,
    };
    let devices = moment.answers.values().map(|reply| match reply {
        Reply::Answer(Answer::Devices(devices)) => devices.len(),
        _ => 0,
    });
    // One line is of all CPUs together.
    if cpus > CPUS + 1 {
        Some(format!("more than {CPUS} CPUs"))
    } else {
        (devices.max() > Some(DEVICES)).then(|| format!("more than {DEVICES} network devices"))
    }
}

/// What the types cannot ensure: there is a sample, time increases, and the machine is plausible.
fn check(capture: Capture, path: &Path) -> Result<Capture> {
    let wrong = |why: &str| Error::NotABundle {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    if capture.moments.is_empty() {
        return Err(wrong("it contains no samples"));
    }
    if let Some(what) = capture
        .moments
        .iter()
        .chain(&capture.samples)
        .find_map(outgrown)
    {
        return Err(Error::TooMany {
            path: path.to_owned(),
            what,
        });
    }
    let forward = capture
        .moments
        .windows(2)
        .all(|two| two[0].at_s < two[1].at_s);
    let (first, last) = (capture.moments.first(), capture.moments.last());
    let ordered = |two: &[Moment]| two[0].at_s <= two[1].at_s;
    let ends = capture.moments.first().zip(capture.moments.last());
    let within = |sample: &Moment| {
        ends.is_some_and(|(first, last)| (first.at_s..=last.at_s).contains(&sample.at_s))
    };
    let sampled = capture.samples.iter().all(within) && capture.samples.windows(2).all(ordered);
    let forward = forward && sampled;
    let within = first.is_some_and(|first| first.at_s >= 0.0)
        && last.is_some_and(|last| last.at_s <= LONGEST_S);
    if !forward || !within {
        return Err(wrong(
            "the times of its samples do not increase from zero, or are longer than any machine runs",
        ));
    }
    Ok(capture)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rungwise_model::kernel::{Endpoint, SocketMemory, TcpInfo, TcpSocket};

    use super::*;

    fn capture() -> Capture {
        let mut moment = Moment::default();
        let text = Raw::Text("cpu 1 2 3\n".to_owned());
        moment.files.insert("/proc/stat".to_owned(), text);
        let failed = Raw::Failed {
            failed: "EACCES".to_owned(),
        };
        moment.files.insert("/proc/1/maps".to_owned(), failed);
        Capture {
            moments: vec![
                moment.clone(),
                Moment {
                    at_s: 2.5,
                    ..moment
                },
            ],
            ..Capture::default()
        }
    }

    fn refused(bytes: &[u8]) -> String {
        unpack_within(bytes, Path::new("x.rungwise"), 1 << 20)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_capture_comes_back_as_it_was() {
        let packed = pack(&capture()).unwrap();
        assert!(looks_like(&packed));
        assert_eq!(unpack(&packed, Path::new("x")).unwrap(), capture());
    }

    #[test]
    fn what_is_no_bundle_is_refused_with_a_reason() {
        assert!(refused(b"hello").contains("not a JSON document"));
        assert!(refused(b"{}").contains("lacks the marker"));
        assert!(refused(br#"{"rungwise_capture":9}"#).contains("newer rungwise"));
        let packed = pack(&capture()).unwrap();
        assert!(refused(&packed[..packed.len() / 2]).contains("cut short"));
        let none = pack(&Capture::default()).unwrap();
        assert!(refused(&none).contains("no samples"));
    }

    #[test]
    fn a_bundle_that_unpacks_without_end_is_refused() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..8 {
            bomb.write_all(&zeros).unwrap();
        }
        assert!(refused(&bomb.finish().unwrap()).contains("unpacks to more than"));
    }

    #[test]
    fn a_bundle_that_unpacks_to_many_times_its_size_is_refused_before_it_is_unpacked() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..64 {
            bomb.write_all(&zeros).unwrap();
        }
        let error = unpack(&bomb.finish().unwrap(), Path::new("x")).unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { limit: SMALL, .. }),
            "{error}"
        );
    }

    #[test]
    fn entries_and_texts_that_no_capture_has_are_refused_before_they_are_read() {
        let head = r#"{"rungwise_capture":1,"version":"0.1.0","capture":{"machine":{},"moments":[{"at_s":0,"files":{"/x":"#;
        let elements = format!(
            r#"{head}{{"failed":[{}0]}}}}}}]}}}}"#,
            "0,".repeat(4_100_000)
        );
        let error = unpack(elements.as_bytes(), Path::new("x")).unwrap_err();
        assert!(
            error.to_string().contains("more than 4000000 entries"),
            "{error}"
        );
        let mut many = capture();
        let cpus = Raw::Text("cpu1 0\n".repeat(CPUS + 2));
        many.moments[1].files.insert("/proc/stat".to_owned(), cpus);
        let error = unpack(&pack(&many).unwrap(), Path::new("x")).unwrap_err();
        assert!(error.to_string().contains("more than 8192 CPUs"), "{error}");
        let text = format!(r#"{head}"{}"}}}}]}}}}"#, " ".repeat((64 << 20) + 1));
        let error = unpack(text.as_bytes(), Path::new("x")).unwrap_err();
        assert!(matches!(error, Error::TooMany { .. }), "{error}");
    }

    #[test]
    fn a_folder_is_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
        files::replace(&folder.path().join(USUAL), &pack(&capture()).unwrap()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), capture());
        let linked = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path().join(USUAL), linked.path().join(USUAL)).unwrap();
        let error = read(linked.path()).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
    }

    #[test]
    fn what_would_not_be_read_again_is_not_written() {
        let error = pack_within(&capture(), 100).unwrap_err();
        assert!(error.to_string().contains("judge the host here"), "{error}");
        let mut alike = capture();
        let blank = Raw::Text(" ".repeat(SMALL as usize));
        alike.moments[0]
            .files
            .insert("/proc/stat".to_owned(), blank);
        let error = pack(&alike).unwrap_err();
        assert!(
            matches!(error, Error::TooMuch { limit: SMALL, .. }),
            "{error}"
        );
    }

    #[test]
    fn connections_that_are_all_alike_are_not_taken_for_a_bomb() {
        let sockets = (0..4000_u16).map(|number| TcpSocket {
            local: Endpoint::new([127, 0, 3, 1].into(), 35961),
            remote: Endpoint::new([127, 0, 0, 1].into(), 20_000 + number),
            state: 1,
            inode: 4_777_040 + u64::from(number),
            memory: Some(SocketMemory {
                rcvbuf: 131_072,
                sndbuf: 3_939_840,
                ..SocketMemory::default()
            }),
            info: Some(TcpInfo::default()),
            ..TcpSocket::default()
        });
        let mut capture = capture();
        for moment in &mut capture.moments {
            let answer = Reply::Answer(Answer::Tcp(sockets.clone().collect()));
            moment.answers.insert("tcp".to_owned(), answer);
        }
        let packed = pack(&capture).unwrap();
        // Of this shape 100,000 would unpack to more than `SMALL`, so that the ratio decides.
        let weighed = weighed(&packed, LIMIT).unwrap();
        // Two samples of 4,000 are a fiftieth of four samples of 100,000.
        assert!(weighed.entries * 50 < ENTRIES, "{}", weighed.entries);
        let times = weighed.bytes / packed.len() as u64;
        assert!((33..TIMES).contains(&times), "{times}");
        assert_eq!(unpack(&packed, Path::new("x")).unwrap(), capture);
    }

    #[test]
    fn any_bytes_are_an_error_and_never_a_panic() {
        let packed = pack(&capture()).unwrap();
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let _ = unpack_within(&damaged, Path::new("x"), 1 << 20);
        }
    }
}
