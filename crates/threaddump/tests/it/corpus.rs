//! The corpus: its bytes, unpacked, and what is known of each file.

#![expect(clippy::disallowed_methods, reason = "tests read the corpus")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Names of all dumps, in order, without the ending that says that one is packed.
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("the corpus is there");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    };
    for path in list(&folder()) {
        if path.is_dir() {
            names.extend(list(&path));
        } else {
            names.push(path);
        }
    }
    let mut names: Vec<String> = names
        .iter()
        .map(|path| {
            path.strip_prefix(folder())
                .expect("within")
                .to_str()
                .expect("ASCII")
        })
        .filter(|name| ![".gitattributes", "README.md", "truth.json"].contains(name))
        .map(|name| name.strip_suffix(".gz").unwrap_or(name).to_owned())
        .collect();
    names.sort();
    names
}

/// A dump as it was written.
pub(crate) fn dump(name: &str) -> Vec<u8> {
    let plain = folder().join(name);
    if let Ok(bytes) = std::fs::read(&plain) {
        return bytes;
    }
    let packed = std::fs::read(folder().join(format!("{name}.gz")))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    bytes
}

/// `truth.json`: files with the counts that are known of them.
pub(crate) fn truth() -> Vec<(String, Value)> {
    let text = std::fs::read(folder().join("truth.json")).expect("truth.json is there");
    let Value::Object(files) = serde_json::from_slice(&text).expect("truth.json is JSON") else {
        panic!("truth.json is an object");
    };
    files
        .into_iter()
        .map(|(name, file)| {
            (
                name.strip_suffix(".gz").unwrap_or(&name).to_owned(),
                file["count"].clone(),
            )
        })
        .collect()
}
