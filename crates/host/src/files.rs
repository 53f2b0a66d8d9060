//! Files of our own: run folders and journals. Durable where a crash must not lose them.
//!
//! Durable means: when the call returns, a power cut no longer loses it. That takes an fsync of the
//! file *and*, for a new or renamed name, of its directory (fsync(2)). A full disk is an error of
//! its own, [`Error::NoSpace`](crate::Error::NoSpace), because a journal that cannot be written forbids the edit.
#![expect(
    unsafe_code,
    reason = "geteuid and getrlimit have no safe wrapper in std, nor has linkat for a file without a name"
)]

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};

/// Most files of the kernel fit one page.
pub(crate) const PAGE: usize = 4096;

/// Replaces `path` with `bytes` in one step: a reader sees the old file or the new one, never half.
///
/// The bytes are written to a file without a name, which a killed process leaves to the kernel. It gets its name when
/// it is whole; over a file that is there by a second name `PATH.PID.new` and a rename, because no system call does
/// that in one. A process killed between those two leaves that name, and the next replacement of `path` removes it.
///
/// A device, a pipe or a link stays what it is and is written to: renaming over `/dev/null` would take it
/// from the whole machine.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let there = fs::symlink_metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(Error::file("write", path));
    }
    if there.is_ok() {
        sweep(path);
    }
    let temporary = named(path, &std::process::id().to_string());
    // Left by a process of our number, or a planted link: never written through.
    let _ = fs::remove_file(&temporary);
    let written = write_unnamed(path, &temporary, bytes).and_then(|named| {
        if named {
            Ok(())
        } else {
            write_named(path, &temporary, bytes)
        }
    });
    if written.is_err() {
        // The error worth reporting is the one above; a leftover is removed as far as possible.
        let _ = fs::remove_file(&temporary);
        return written.map_err(Error::file("write", path));
    }
    sync_dir(parent(path)).map_err(Error::file("sync the directory of", path))
}

/// Fails where [`replace`] would fail to write `room` bytes to `path` now: no permission, a read-only or full file system. Leaves
/// nothing behind, and `path` as it is. A pipe is not opened, since its reader may come later.
pub fn try_replace(path: &Path, room: usize) -> Result<()> {
    let there = fs::symlink_metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file()) {
        let is_pipe = fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
        let opened = || OpenOptions::new().write(true).open(path);
        return if is_pipe {
            Ok(())
        } else {
            opened().map(drop).map_err(Error::file("write", path))
        };
    }
    let bytes = vec![0; room];
    let unnamed = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(parent(path));
    let tried = if let Ok(mut file) = unnamed {
        file.write_all(&bytes)
    } else {
        let temporary = named(path, &std::process::id().to_string());
        let _ = fs::remove_file(&temporary);
        File::create_new(&temporary).and_then(|mut file| {
            let written = file.write_all(&bytes);
            let _ = fs::remove_file(&temporary);
            written
        })
    };
    tried.map_err(Error::file("write", path))
}

/// Writes a file, and the folders in which it is missing; readable for all as far as the umask allows, and not synced to the disk: for files
/// that no crash needs to spare.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let above = parent(path);
    fs::create_dir_all(above).map_err(Error::file("create directory", above))?;
    fs::write(path, bytes).map_err(Error::file("write", path))
}

/// Writes a new file that only its owner may read; fails where the name is taken, be it by a link that leads nowhere.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = file.map_err(Error::file("create", path))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a file is none.
        let _ = fs::remove_file(path);
        Error::file("write", path)(error)
    })
}

/// The usual way of [`replace`]. Not every file system has files without a name (`O_TMPFILE`), and they get theirs
/// through `/proc`: false where that cannot be.
fn write_unnamed(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<bool> {
    let unnamed = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(parent(path));
    let Ok(mut file) = unnamed else {
        // Any other cause gets a better error from the other way.
        return Ok(false);
    };
    file.write_all(bytes)?;
    file.sync_all()?;
    match link(&file, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Locked until it has its final name, so that no process takes it for a leftover; where locks are
            // impossible, leftovers are not removed either.
            let _ = file.lock();
            link(&file, temporary)?;
            fs::rename(temporary, path)?;
            Ok(true)
        }
        Err(_) => Ok(false),
    }
}

/// The other way of [`replace`].
fn write_named(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(temporary)?;
    let _ = file.lock();
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// Gives an open file without a name the name `path`.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let open = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both names are zero-terminated strings that outlive the call.
    let linked = unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            open.as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    if linked == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The second name of [`replace`] in the process `pid`.
fn named(path: &Path, pid: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{pid}.new"));
    path.with_file_name(name)
}

/// Removes what killed processes left beside `path`: plain files with a second name that no process holds.
fn sweep(path: &Path) {
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    let left = |name: &str| -> Option<PathBuf> {
        let pid = name.strip_prefix(&*own)?.strip_prefix('.')?;
        let pid = pid.strip_suffix(".new")?;
        let number = pid.bytes().all(|byte| byte.is_ascii_digit()) && !pid.is_empty();
        number.then(|| named(path, pid))
    };
    // What cannot be listed, opened or removed stays; the file itself is what counts.
    let names = list(parent(path)).unwrap_or_default();
    for leftover in names.iter().filter_map(|name| left(name)) {
        if is_plain(&leftover) && File::open(&leftover).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(&leftover);
        }
    }
}

/// Makes a rename or a new file in `dir` survive a power cut.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// A file that grows by records, each durable before [`Appender::append`] returns.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Appender {
    /// Opens `path` for appending; creates it durably if it is not there.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(Error::file("open", path))?;
        let length = file
            .metadata()
            .map_err(Error::file("read the size of", path))?
            .len();
        sync_dir(parent(path)).map_err(Error::file("sync the directory of", path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
        })
    }

    /// Appends `record` and waits until the disk has it. After a failure the file is cut back to its
    /// former length, so that a half-written record cannot stand before the next one.
    pub fn append(&mut self, record: &[u8]) -> Result<()> {
        let written = self
            .file
            .write_all(record)
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.length += record.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If this fails too, the reader of the file meets a torn last record.
                let _ = self.file.set_len(self.length);
                Err(Error::file("append to", &self.path)(error))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates a directory and its missing parents, durably; none is writable for a group or for all users.
pub fn create_dir_all(dir: &Path) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = parent(dir);
    if above != dir {
        create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o755).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => made.map_err(Error::file("create directory", dir))?,
    }
    sync_dir(above).map_err(Error::file("sync", above))
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(Error::file("read", path))
}

/// Reads a file that may have no end: at most so many bytes of it.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(Error::file("read", path))?;
    Ok(bytes)
}

/// Reads a whole file from its beginning once more. A kernel file about something that has ended is an error (`ESRCH`).
pub fn read_again(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PAGE];
    let mut length = 0;
    loop {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
    }
    bytes.truncate(length);
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Half of the descriptors that this process may have open: as many may be kept.
pub fn most_open() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a live local that the call writes to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    usize::try_from(limit.rlim_cur / 2).unwrap_or(usize::MAX)
}

/// Reads what a file has from this byte on, at most so many bytes.
pub fn read_from(file: &File, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().saturating_sub(from).min(most);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    match file.read_exact_at(&mut bytes, from) {
        // It became shorter meanwhile.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        read => read.map(|()| bytes),
    }
}

/// Opens a file to be read from its beginning, in pieces. A folder is an error at once.
pub fn open(path: &Path) -> Result<File> {
    let opened = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(file)
    });
    opened.map_err(Error::file("read", path))
}

/// Opens a plain file, or a link to one. Anything else is an error at once: opening a pipe would wait for its writer.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    Ok(file)
}

/// Opens a folder, which keeps it reachable by `/proc/self/fd/N` when its name is gone.
pub fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(path)
}

/// A file below an opened folder.
pub fn below(folder: &File, path: &str) -> PathBuf {
    let path = path.trim_start_matches('/');
    PathBuf::from(format!("/proc/self/fd/{}/{path}", folder.as_raw_fd()))
}

/// Reads a plain file of this user that others may have replaced by a link or by a file of their own.
pub fn read_of_user(path: &Path, user: u32, most: usize) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != user {
        let why = format!("it is not a file of user {user}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let why = format!("it is longer than {} MiB", most >> 20);
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

/// Where a link leads, as it is written.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    fs::read_link(path)
}

/// Whether it is a plain file itself: no link to one, no device, no pipe.
pub fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_file())
}

/// Whether it is a plain file or a link to one: it has an end and can be read twice.
pub fn leads_to_plain(path: &Path) -> bool {
    path.is_file()
}

/// Whether both are names of one plain file, directly or by links.
pub fn is_one_file(a: &Path, b: &Path) -> bool {
    let identity =
        |path| fs::metadata(path).map(|there| (there.is_file(), there.dev(), there.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b && a.0)
}

/// Whether it is neither file nor folder, and none of the descriptors that this process was started with: a pipe with a name,
/// which waits for a writer, a device or a socket. Asked of the name, so that nothing is opened.
pub fn would_wait(path: &Path) -> bool {
    let given = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];
    let is_given = given.iter().any(|known| path.starts_with(known));
    !is_given && fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Whether something is there; an error (a directory that may not be searched) reads as no.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Why nothing can be found at `path`; `None` where something is there.
pub fn why_missing(path: &Path) -> Option<String> {
    let error = fs::metadata(path).err()?;
    Some(match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a folder".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: a folder of the path may not be searched".to_owned()
        }
        _ => error.to_string(),
    })
}

/// Whether `path` is a folder; a link to one is.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// When it was last written to.
pub fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// Removes a file, durably; one that is not there is removed.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed
            .and_then(|()| sync_dir(parent(path)))
            .map_err(Error::file("remove", path)),
    }
}

/// Makes a folder that users of other ids can read; it must not exist.
pub fn create_folder(dir: &Path) -> Result<()> {
    DirBuilder::new()
        .mode(0o755)
        .create(dir)
        .map_err(Error::file("create folder", dir))
}

/// Removes a folder and all that is in it; one that is not there is removed.
pub fn remove_folder(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::file("remove folder", dir)),
    }
}

/// Copies a file with its permissions, and makes the folders in which it is missing; not synced to the disk.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let above = parent(to);
    fs::create_dir_all(above).map_err(Error::file("create directory", above))?;
    fs::copy(from, to)
        .map(drop)
        .map_err(Error::file("copy", from))
}

/// How long ago a file was changed; zero where the clock says that it will be.
pub fn age(path: &Path) -> io::Result<Duration> {
    Ok(modified(path)?.elapsed().unwrap_or_default())
}

/// Gives a file or a folder another name in the same file system, in one step.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(Error::file("rename", from))
}

/// Names in a directory, sorted.
pub fn list(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Names of the folders in a directory, sorted. The list contains the type of each entry: no file is examined.
pub fn folders(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Why another user could have made or changed what is in this folder; absent where only we (and root) could.
pub fn why_not_ours(dir: &Path) -> Result<Option<String>> {
    let about = fs::metadata(dir).map_err(Error::file("examine", dir))?;
    Ok(not_ours_alone(&about))
}

/// Why another user could have made or changed this; absent where only we (and root) could.
pub fn not_ours_alone(about: &Metadata) -> Option<String> {
    // SAFETY: only reads an id of the process.
    if about.uid() != unsafe { libc::geteuid() } {
        return Some(format!("it belongs to user {}, not to you", about.uid()));
    }
    let mode = about.mode() & 0o777;
    (mode & 0o022 != 0).then(|| format!("other users may write to it (mode {mode:o})"))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) => Path::new("."),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_leaves_one_file_with_the_new_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
        assert_eq!(list(dir.path()).unwrap(), ["manifest.json"]);
    }

    #[test]
    fn a_trial_fails_where_replacing_would_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        try_replace(&path, 1 << 20).unwrap();
        assert_eq!(list(dir.path()).unwrap(), [""; 0]);
        replace(&path, b"old").unwrap();
        try_replace(&path, 1 << 20).unwrap();
        assert_eq!(read(&path).unwrap(), b"old");
        try_replace(Path::new("/dev/null"), 1 << 20).unwrap();
        // Nobody may make files in these, root included.
        for refused in ["/proc/report.json", "/sys/kernel/report.json"] {
            assert!(try_replace(Path::new(refused), 1).is_err(), "{refused}");
        }
        let missing = dir.path().join("none/report.json");
        assert!(try_replace(&missing, 1).is_err());
    }

    #[test]
    fn what_is_missing_is_distinguished_from_what_is_behind_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        replace(&file, b"x").unwrap();
        assert_eq!(why_missing(&file), None);
        assert!(
            why_missing(&dir.path().join("b"))
                .unwrap()
                .contains("no such file")
        );
        assert!(
            why_missing(&file.join("b"))
                .unwrap()
                .contains("not a folder")
        );
    }

    #[test]
    fn a_new_file_takes_no_name_that_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("kept"), dir.path().join("link"));
        create_new(&path, b"first").unwrap();
        assert!(create_new(&path, b"second").is_err());
        assert_eq!(read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
        assert!(create_new(&link, b"third").is_err());
        assert!(!exists(&dir.path().join("elsewhere")));
    }

    #[test]
    fn one_file_has_many_names_and_a_device_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other, link) = (
            dir.path().join("a"),
            dir.path().join("b"),
            dir.path().join("l"),
        );
        replace(&file, b"same").unwrap();
        replace(&other, b"same").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_one_file(&file, &link));
        assert!(!is_one_file(&file, &other));
        assert!(!is_one_file(&file, &dir.path().join("none")));
        assert!(!is_one_file(Path::new("/dev/null"), Path::new("/dev/null")));
    }

    #[test]
    fn records_are_appended_behind_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        Appender::open(&path).unwrap().append(b"one\n").unwrap();
        let mut again = Appender::open(&path).unwrap();
        again.append(b"two\n").unwrap();
        assert_eq!(read(again.path()).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_full_disk_is_named_as_such() {
        // The kernel's own always-full device; it is a file of its own kind, so only the write counts.
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut full = Appender {
            path: "/dev/full".into(),
            file,
            length: 0,
        };
        let error = full.append(b"x").unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    }

    #[test]
    fn directories_are_made_with_their_parents_and_removal_may_come_twice() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create_dir_all(&deep).unwrap();
        create_dir_all(&deep).unwrap();
        let file = deep.join("x");
        replace(&file, b"").unwrap();
        assert!(exists(&file));
        remove(&file).unwrap();
        remove(&file).unwrap();
        assert!(!exists(&file));
        let error = create_dir_all(Path::new("/dev/null/x")).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot create directory"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_plain_file_is_written_to_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        replace(&file, b"a longer text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"short").unwrap();
        assert!(link.is_symlink());
        assert_eq!(read(&file).unwrap(), b"short");
        // A device of our own in effect: a link to one.
        let null = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        replace(&null, b"gone").unwrap();
        assert!(null.is_symlink() && !Path::new("/dev/null").is_file());
    }

    #[test]
    fn a_file_without_end_is_read_as_far_as_that() {
        assert_eq!(
            read_at_most(Path::new("/dev/zero"), 70_000).unwrap().len(),
            70_000
        );
        assert!(!is_plain(Path::new("/dev/zero")) && !is_plain(Path::new("/proc/self/exe")));
        assert!(is_plain(Path::new("/proc/self/stat")));
    }

    #[test]
    fn a_file_is_read_again_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let long = vec![b'x'; 3 * PAGE + 1];
        for bytes in [&b""[..], b"text", &long] {
            replace(&path, bytes).unwrap();
            let file = open(&path).unwrap();
            assert_eq!(read_again(&file).unwrap(), bytes);
            assert_eq!(read_again(&file).unwrap(), bytes);
        }
        assert!(most_open() > 0);
    }

    #[test]
    fn a_folder_cannot_be_opened_as_a_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open(dir.path()).is_err());
        let path = dir.path().join("file");
        replace(&path, b"text").unwrap();
        let mut text = String::new();
        open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("result"), dir.path().join("victim"));
        replace(&victim, b"precious").unwrap();
        let temporary = named(&path, &std::process::id().to_string());
        for text in ["new", "newer"] {
            std::os::unix::fs::symlink(&victim, &temporary).unwrap();
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&victim).unwrap(), b"precious");
            assert_eq!(read(&path).unwrap(), text.as_bytes());
            assert!(!temporary.is_symlink());
        }
    }

    #[test]
    fn without_files_that_have_no_name_it_is_written_under_a_second_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result");
        for text in ["one", "two"] {
            write_named(&path, &named(&path, "1"), text.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap(), text.as_bytes());
        }
        assert_eq!(list(dir.path()).unwrap(), ["result"]);
    }

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_held_or_named_otherwise_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result");
        let others = ["other.7.new", "result.7.old", "result.new", "result.x7.new"];
        for name in others
            .iter()
            .chain(&["result", "result.7.new", "result.8.new"])
        {
            fs::write(dir.path().join(name), "text").unwrap();
        }
        let held = File::open(dir.path().join("result.8.new")).unwrap();
        held.lock().unwrap();
        std::os::unix::fs::symlink("other.7.new", dir.path().join("result.9.new")).unwrap();
        replace(&path, b"new").unwrap();
        let mut stays = [&others[..], &["result", "result.8.new", "result.9.new"]].concat();
        stays.sort_unstable();
        assert_eq!(list(dir.path()).unwrap(), stays);
        drop(held);
        replace(&path, b"newer").unwrap();
        assert!(!exists(&dir.path().join("result.8.new")));
    }
}
