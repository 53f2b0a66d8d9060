//! The corpus: its bytes, unpacked, and what is known of each file.

#![expect(clippy::disallowed_methods, reason = "tests read the corpus")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
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
