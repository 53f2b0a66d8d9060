//! The corpus: its bytes, unpacked, and what is known of each file.

#![expect(clippy::disallowed_methods, reason = "tests read the corpus")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::{DeflateDecoder, MultiGzDecoder};
use serde_json::Value;

/// The folder of the logs.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// A log as the JVM wrote it. A `.gz` that is cut gives what is there.
pub(crate) fn log(name: &str) -> Vec<u8> {
    let bytes =
        std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    if Path::new(name).extension().is_none_or(|end| end != "gz") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    // Its error is that of a stream which ends too early, and the file's name says which one does.
    let read = MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked);
    assert!(read.is_ok() || name.contains("cut"), "{name}: {read:?}");
    unpacked
}

/// The bytes of a log of the corpus; a set of rotated files in the order in which it was written.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    if let Some(folder) = name.strip_suffix('/') {
        // The JVM writes to the name without a number and moves it away.
        return log(&format!("{folder}/jdk25-g1.log.0"))
            .into_iter()
            .chain(log(&format!("{folder}/jdk25-g1.log")))
            .collect();
    }
    let bytes = log(name);
    if bytes.starts_with(b"PK\x03\x04") {
        return only_entry(&bytes);
    }
    bytes
}

/// The first file of a zip archive, from its local header (APPNOTE.TXT 4.3.7).
fn only_entry(zip: &[u8]) -> Vec<u8> {
    let length = |at: usize| usize::from(u16::from_le_bytes([zip[at], zip[at + 1]]));
    let data = 30 + length(26) + length(28);
    let mut text = Vec::new();
    DeflateDecoder::new(&zip[data..])
        .read_to_end(&mut text)
        .expect("a whole archive");
    text
}

/// Names of all that lies in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    entries.filter_map(name).collect()
}

/// Names of all logs of the corpus, in order; that of a rotated set ends with a slash.
pub(crate) fn logs() -> Vec<String> {
    let mut names = names(&folder());
    names.retain(|name| ![".gitattributes", "README.md", "truth.json"].contains(&&**name));
    for name in &mut names {
        if folder().join(&*name).is_dir() {
            name.push('/');
        }
    }
    names.sort();
    names
}

/// `truth.json`: files with what is known of them.
pub(crate) fn truth() -> Vec<(String, Value)> {
    let text = std::fs::read(folder().join("truth.json")).expect("truth.json is there");
    let Value::Object(files) = serde_json::from_slice(&text).expect("truth.json is JSON") else {
        panic!("truth.json is an object");
    };
    files.into_iter().collect()
}

/// Files whose lines were counted by the rules of `style`, with the counts.
pub(crate) fn counted(style: &str) -> Vec<(String, Value)> {
    truth()
        .into_iter()
        .filter_map(|(name, file)| {
            let count = file.get("truth")?.get("count")?;
            (count.get("style")? == style).then(|| (name, count.clone()))
        })
        .collect()
}
