//! Tests on frames captured from real consumers and providers, on values written by Java, and on made and damaged bytes.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test vectors are files of the source tree, and a test may panic"
)]

mod allocations;
mod captures;
mod damaged;
mod json;
mod round_trips;
mod streams;
mod values;

use std::path::{Path, PathBuf};

use rungwise_dubbo::{Error, Frame, Problem};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Names and bytes of the captured frames, sorted by name.
fn frames() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(tests().join("frames")).unwrap();
    let mut frames: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    frames.sort();
    assert!(frames.len() > 40, "{} frames", frames.len());
    frames
}

fn captured(name: &str) -> Vec<u8> {
    let found = frames().into_iter().find(|(each, _)| each == name);
    found.unwrap_or_else(|| panic!("no frame {name}")).1
}

fn whole(bytes: &[u8]) -> Frame<'_> {
    let frame = Frame::parse(bytes, u32::MAX, 0).unwrap();
    let frame = frame.expect("a whole frame");
    assert_eq!(frame.wire_len(), bytes.len());
    frame
}

/// A value as Java writes it.
struct Written {
    name: String,
    version: String,
    bytes: Vec<u8>,
}

fn written() -> Vec<Written> {
    let text = std::fs::read_to_string(tests().join("values.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let written: Vec<Written> = lines
        .map(|line| {
            let parts: Vec<&str> = line.split(' ').collect();
            let [name, version, hex] = parts[..] else {
                panic!("{line}");
            };
            Written {
                name: name.to_owned(),
                version: version.to_owned(),
                bytes: unhex(hex),
            }
        })
        .collect();
    assert!(written.len() > 100);
    written
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// The problem of an error within a body.
fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> Problem {
    match result {
        Err(Error::Body { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}
