//! Files of our own: run folders and journals. Durable where a crash must not lose them.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces `path` with `bytes` in one step: a reader sees the old file or the new one, never half.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = parent(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = dir.join(name);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The error worth reporting is the one above; a leftover is removed as far as possible.
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    sync_dir(dir)
}

/// Makes a rename or a new file in `dir` survive a power cut.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}
