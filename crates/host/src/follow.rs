//! A text that is still being written: a file followed as `tail -F` does, or standard input.
//!
//! A file is followed by its name. When another file has it, what is left of the old one is read first, and the new one
//! is taken up once something is in it: a writer that has not noticed a rotation continues in the old one. A file that
//! becomes shorter was emptied (`copytruncate`, or a program that restarts). A writer that continues at its old offset
//! leaves a hole before it, which is skipped; a writer that starts at the beginning writes a new text.
//!
//! Nothing is polled: inotify(7) reports writes to the file and names in its folder, and in the folders that links lead
//! through. It does not see what another machine writes to a network file system.
#![expect(
    unsafe_code,
    reason = "inotify and SEEK_DATA have no safe wrapper in std"
)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::signals::Interrupt;
use crate::wait;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// So many bytes of the text.
    Bytes(usize),
    /// Another text begins: of the first file, of the next one, or of one that was emptied.
    Anew,
    /// There is no more yet.
    Nothing,
    /// There will be no more.
    End,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// There may be more to read.
    Changed,
    /// A signal asks to stop.
    Interrupted,
    /// The time is over.
    Late,
}

/// A file that is followed by its name.
#[derive(Debug)]
pub struct Followed {
    path: PathBuf,
    current: fn(&Path) -> PathBuf,
    changes: OwnedFd,
    open: Option<Opened>,
    /// Another file with the name; it was empty when it was checked.
    next: Option<Opened>,
    /// Texts that began.
    begun: u64,
}

#[derive(Debug)]
struct Opened {
    path: PathBuf,
    file: File,
    at: u64,
    watch: i32,
    emptied: bool,
}

/// Links that are followed, as many as the kernel does (`MAXSYMLINKS`, linux/namei.h).
const LINKS: usize = 40;

impl Followed {
    /// Follows the file that `current` gives for `path`, which is asked again and again: where a writer puts a number
    /// into the name, it returns the latest. The file need not be there yet, its folder must.
    pub fn new(path: &Path, current: fn(&Path) -> PathBuf) -> Result<Self> {
        // SAFETY: no pointers; the descriptor is ours from here on.
        let fd = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if fd < 0 {
            return Err(watching(path)(io::Error::last_os_error()));
        }
        let followed = Self {
            path: path.to_owned(),
            current,
            // SAFETY: just made, and nobody else has it.
            changes: unsafe { OwnedFd::from_raw_fd(fd) },
            open: None,
            next: None,
            begun: 0,
        };
        followed.watch_folders(path)?;
        Ok(followed)
    }

    /// Reads the next bytes.
    pub fn read(&mut self, piece: &mut [u8]) -> Result<Next> {
        if let Some(next) = self.rest(piece)? {
            return Ok(next);
        }
        if !self.check_file()? {
            return Ok(Next::Nothing);
        }
        // Another one is written to by now: what came to the old one since.
        if let Some(next) = self.rest(piece)? {
            return Ok(next);
        }
        if let Some(old) = &self.open {
            // SAFETY: no pointers. A watch that is gone with its file is an error that changes nothing.
            unsafe { libc::inotify_rm_watch(self.changes.as_raw_fd(), old.watch) };
        }
        self.open = self.next.take();
        self.begun += 1;
        Ok(Next::Anew)
    }

    /// Waits until there may be more.
    pub fn wait(&self, interrupt: &Interrupt, within: Option<Duration>) -> Result<Woken> {
        let woken = woken([interrupt.fd(), self.changes.as_fd()], within)
            .map_err(Error::file("wait for a change of", &self.path))?;
        if woken == Woken::Changed {
            // What changed does not matter: everything is checked anyway.
            let mut events = [0_u8; 4096];
            // SAFETY: the buffer outlives the call, and the length is its own.
            while unsafe {
                libc::read(
                    self.changes.as_raw_fd(),
                    events.as_mut_ptr().cast(),
                    events.len(),
                )
            } > 0
            {}
        }
        Ok(woken)
    }

    /// The file that is read; nothing before the first one is there.
    pub fn file(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| &*open.path)
    }

    /// Whether all that was read can be read again under the name of [`Followed::file`], from the beginning.
    pub fn can_be_read_again(&self) -> bool {
        let same = |open: &Opened| {
            let there = fs::metadata(&open.path);
            there.is_ok_and(|there| there.len() >= open.at && open.is(&there))
        };
        self.begun == 1 && self.open.as_ref().is_some_and(same)
    }

    /// More of the open file; nothing where there is none.
    fn rest(&mut self, piece: &mut [u8]) -> Result<Option<Next>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let read = open.rest(piece).map_err(Error::file("read", &open.path))?;
        self.begun += u64::from(read == Some(Next::Anew));
        Ok(read)
    }

    /// Checks whether another file has the name. True when it is the first one, or there is something in it.
    fn check_file(&mut self) -> Result<bool> {
        let path = (self.current)(&self.path);
        let mut there = fs::metadata(&path);
        if there.is_err() {
            // A link may lead elsewhere now. It may have come between the two checks.
            self.watch_folders(&path)?;
            there = fs::metadata(&path);
        }
        let there = match there {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        if self.open.as_ref().is_some_and(|open| open.is(&there)) {
            self.next = None;
            return Ok(false);
        }
        if !self.next.as_ref().is_some_and(|next| next.is(&there)) {
            self.watch_folders(&path)?;
            self.next = self.opened(path)?;
        }
        let next = self.next.as_ref();
        Ok(next.is_some_and(|next| self.open.is_none() || next.holds_something()))
    }

    /// Opens a file and watches it; nothing where it is gone by now.
    fn opened(&self, path: PathBuf) -> Result<Option<Opened>> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let plain = file.metadata().is_ok_and(|there| there.is_file());
        if !plain {
            return Err(Error::Missing {
                tried: format!("follow {}", path.display()),
                why: "it is not a regular file".to_owned(),
                remedy: "pass the pipe as standard input".to_owned(),
            });
        }
        // By its descriptor, so that it is this file, whatever has the name now.
        let itself = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let watch = self
            .watch(&itself, libc::IN_MODIFY)
            .map_err(watching(&path))?;
        Ok(Some(Opened {
            path,
            file,
            at: 0,
            watch,
            emptied: false,
        }))
    }

    /// Watches for names in the folder of `path`, and in those of the links that it leads through.
    fn watch_folders(&self, path: &Path) -> Result<()> {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
                _ => PathBuf::from("."),
            };
            let names = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ONLYDIR;
            self.watch(&folder, names).map_err(watching(&folder))?;
            match fs::read_link(&path) {
                Ok(target) => path = folder.join(target),
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn watch(&self, path: &Path, what: u32) -> io::Result<i32> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the name is a zero-terminated string that outlives the call.
        let watch =
            unsafe { libc::inotify_add_watch(self.changes.as_raw_fd(), path.as_ptr(), what) };
        if watch < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(watch)
        }
    }
}

impl Opened {
    fn is(&self, there: &fs::Metadata) -> bool {
        let own = self.file.metadata();
        own.is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    }

    fn holds_something(&self) -> bool {
        self.file.metadata().is_ok_and(|there| there.len() > 0)
    }

    fn rest(&mut self, piece: &mut [u8]) -> io::Result<Option<Next>> {
        loop {
            let count = match self.file.read_at(piece, self.at) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if count == 0 {
                if self.file.metadata()?.len() >= self.at {
                    return Ok(None);
                }
                self.at = 0;
                self.emptied = true;
                continue;
            }
            if self.emptied {
                if piece[0] != 0 && self.at == 0 {
                    self.emptied = false;
                    return Ok(Some(Next::Anew));
                }
                // The hole ends at a page at best; the rest of it are zeros.
                let zeros = piece[..count].iter().take_while(|&&byte| byte == 0).count();
                if zeros > 0 {
                    self.at = self.data_from(self.at + zeros as u64);
                    continue;
                }
                self.emptied = false;
            }
            self.at += count as u64;
            return Ok(Some(Next::Bytes(count)));
        }
    }

    /// Where the file holds something again, from `at` on; `at` itself where that is unknown.
    fn data_from(&self, at: u64) -> u64 {
        let Ok(from) = libc::off_t::try_from(at) else {
            return at;
        };
        // SAFETY: no pointers. Nothing uses the offset of the descriptor: reads name theirs.
        let data = unsafe { libc::lseek(self.file.as_raw_fd(), from, libc::SEEK_DATA) };
        u64::try_from(data).unwrap_or(at)
    }
}

/// Standard input of this process, which ends.
#[derive(Debug)]
pub struct Stdin {
    begun: bool,
}

impl Stdin {
    /// From where it is.
    pub fn new() -> Self {
        Self { begun: false }
    }

    /// Reads the next bytes, if there are some by now.
    pub fn read(&mut self, piece: &mut [u8]) -> Result<Next> {
        let tried = || Error::system("read standard input");
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(Next::Anew);
        }
        let input = io::stdin();
        if !wait::readable(input.as_fd(), Duration::ZERO).map_err(tried())? {
            return Ok(Next::Nothing);
        }
        match input.lock().read(piece) {
            Ok(0) => Ok(Next::End),
            Ok(count) => Ok(Next::Bytes(count)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Next::Nothing),
            Err(error) => Err(tried()(error)),
        }
    }

    /// Waits until there may be more.
    pub fn wait(&self, interrupt: &Interrupt, within: Option<Duration>) -> Result<Woken> {
        woken([interrupt.fd(), io::stdin().as_fd()], within)
            .map_err(Error::system("wait for standard input"))
    }
}

impl Default for Stdin {
    fn default() -> Self {
        Self::new()
    }
}

fn woken(fds: [std::os::fd::BorrowedFd<'_>; 2], within: Option<Duration>) -> io::Result<Woken> {
    Ok(match wait::first_readable(fds, within)? {
        Some(0) => Woken::Interrupted,
        Some(_) => Woken::Changed,
        None => Woken::Late,
    })
}

/// Why a path cannot be watched. The kernel's words for its two limits would mislead.
fn watching(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let tried = format!("watch {}", path.display());
    move |source| match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EMFILE) => Error::Missing {
            tried,
            why: "this user has no inotify watches left".to_owned(),
            remedy: "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
                .to_owned(),
        },
        _ => Error::System { tried, source },
    }
}

#[cfg(test)]
mod tests {
    use fs::OpenOptions;
    use std::io::{Seek as _, Write as _};

    use super::*;

    struct Lab {
        dir: tempfile::TempDir,
        followed: Followed,
    }

    impl Lab {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let followed = Followed::new(&dir.path().join("log"), Path::to_owned).unwrap();
            Self { dir, followed }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn append(&self, name: &str, text: &str) {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(self.path(name))
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        /// All there is, with `|` where another text begins.
        fn read(&mut self) -> String {
            let mut all = String::new();
            let mut piece = [0; 7];
            loop {
                match self.followed.read(&mut piece).unwrap() {
                    Next::Bytes(count) => all += str::from_utf8(&piece[..count]).unwrap(),
                    Next::Anew => all.push('|'),
                    Next::Nothing => return all,
                    Next::End => panic!("a file has no end"),
                }
            }
        }

        fn is_woken(&self) -> bool {
            let changes = self.followed.changes.as_fd();
            let woken = wait::readable(changes, Duration::ZERO).unwrap();
            let mut events = [0_u8; 4096];
            // SAFETY: the buffer outlives the call, and the length is its own.
            unsafe { libc::read(changes.as_raw_fd(), events.as_mut_ptr().cast(), 4096) };
            woken
        }
    }

    #[test]
    fn a_file_that_comes_later_and_grows_is_read_as_it_does() {
        let mut lab = Lab::new();
        assert_eq!(lab.read(), "");
        lab.append("log", "one\ntw");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "|one\ntw");
        lab.append("log", "o\n");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "o\n");
        assert!(lab.followed.can_be_read_again());
        // Writes to others are none of ours.
        fs::write(lab.path("other"), "").unwrap();
        assert!(lab.is_woken());
        lab.append("other", "text");
        assert!(!lab.is_woken());
    }

    #[test]
    fn the_rest_of_the_old_file_comes_before_the_new_one() {
        let mut lab = Lab::new();
        lab.append("log", "one\n");
        assert_eq!(lab.read(), "|one\n");
        fs::rename(lab.path("log"), lab.path("log.0")).unwrap();
        assert_eq!(lab.read(), "");
        lab.append("log.0", "two\n");
        lab.append("log", "three\n");
        assert_eq!(lab.read(), "two\n|three\n");
        assert!(!lab.followed.can_be_read_again());
    }

    #[test]
    fn a_writer_that_does_not_notice_a_rotation_goes_on_in_the_old_file() {
        let mut lab = Lab::new();
        lab.append("log", "one\n");
        lab.read();
        fs::rename(lab.path("log"), lab.path("log.0")).unwrap();
        lab.append("log", "");
        assert_eq!(lab.read(), "");
        lab.append("log.0", "two\n");
        assert_eq!(lab.read(), "two\n");
        lab.is_woken();
        lab.append("log", "three\n");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "|three\n");
    }

    #[test]
    fn a_file_that_was_emptied_begins_anew() {
        let mut lab = Lab::new();
        lab.append("log", "one\n");
        lab.read();
        fs::write(lab.path("log"), "").unwrap();
        assert_eq!(lab.read(), "");
        lab.append("log", "two\n");
        assert_eq!(lab.read(), "|two\n");
        assert!(!lab.followed.can_be_read_again());
    }

    #[test]
    fn who_keeps_its_place_in_an_emptied_file_goes_on_behind_a_hole() {
        let mut lab = Lab::new();
        let mut writer = File::create(lab.path("log")).unwrap();
        writer.write_all("x".repeat(9000).as_bytes()).unwrap();
        assert_eq!(lab.read().len(), 9001);
        File::options()
            .write(true)
            .open(lab.path("log"))
            .unwrap()
            .set_len(0)
            .unwrap();
        assert_eq!(lab.read(), "");
        assert_eq!(writer.stream_position().unwrap(), 9000);
        writer.write_all(b"two\n").unwrap();
        assert_eq!(lab.read(), "two\n");
        writer.write_all(b"three\n").unwrap();
        assert_eq!(lab.read(), "three\n");
    }

    #[test]
    fn the_target_of_a_link_is_followed_when_it_is_replaced_or_the_link_is_turned() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("elsewhere")).unwrap();
        let link = dir.path().join("log");
        std::os::unix::fs::symlink("elsewhere/a", &link).unwrap();
        let mut lab = Lab {
            followed: Followed::new(&link, Path::to_owned).unwrap(),
            dir,
        };
        assert_eq!(lab.read(), "");
        lab.append("elsewhere/a", "one\n");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "|one\n");
        fs::rename(lab.path("elsewhere/a"), lab.path("elsewhere/a.0")).unwrap();
        lab.is_woken();
        lab.append("elsewhere/a", "two\n");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "|two\n");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("elsewhere/b", &link).unwrap();
        lab.append("elsewhere/b", "three\n");
        assert!(lab.is_woken());
        assert_eq!(lab.read(), "|three\n");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_and_so_is_a_folder_itself() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/log");
        let error = Followed::new(&missing, Path::to_owned).unwrap_err();
        assert!(error.to_string().starts_with("cannot watch"), "{error}");
        let mut followed = Followed::new(dir.path(), Path::to_owned).unwrap();
        let error = followed.read(&mut [0; 9]).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}
