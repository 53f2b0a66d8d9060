//! A real JVM with a web server whose requests allocate a known number of bytes (`jvm/Planted.java`).
#![expect(
    clippy::disallowed_methods,
    reason = "compiles a program and runs it, for tests alone"
)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::TimeLimit;

/// Of a JVM from its start to its end; one that hangs must fail.
const LIMIT: Duration = Duration::from_mins(10);

/// Where the bytes of a request are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// In the thread of the connection.
    Stay,
    /// In a platform thread that ends with the request.
    End,
    /// In a virtual thread (JDK 21 and later).
    Virtual,
    /// As `Stay`, and a thread allocates 1 MB each 10 ms, whatever the load.
    Busy,
}

/// The JVM; dropping it ends it.
#[derive(Debug)]
pub struct PlantedJvm {
    child: Child,
    limit: Option<TimeLimit>,
    port: u16,
    folder: tempfile::TempDir,
}

/// A program in PATH, such as `java-11`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// Compiles the server into a folder.
///
/// # Panics
///
/// `javac` is not in PATH.
pub fn compile_planted(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jvm/Planted.java");
    let compiled = Command::new("javac")
        .args(["--release", "8", "-nowarn", "-d"])
        .args([folder, &source])
        .output()
        .expect("javac is in PATH; cargo xtask test installs one");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
}

impl PlantedJvm {
    /// Compiles the server and starts it under `java` with these options, as `user` where one is given.
    ///
    /// # Panics
    ///
    /// `javac` is not in PATH, or the JVM does not start.
    #[must_use]
    pub fn start(java: &Path, options: &[&str], how: How, user: Option<u32>) -> Self {
        Self::start_in(&std::env::temp_dir(), java, options, how, user)
    }

    /// The same, with its classes and working directory in a folder of its own below `place`.
    ///
    /// # Panics
    ///
    /// As [`PlantedJvm::start`].
    #[must_use]
    pub fn start_in(
        place: &Path,
        java: &Path,
        options: &[&str],
        how: How,
        user: Option<u32>,
    ) -> Self {
        let folder = tempfile::tempdir_in(place).expect("a scratch folder");
        compile_planted(folder.path());
        let mut command = Command::new(java);
        command
            .args(options)
            .args(["-cp", folder.path().to_str().expect("UTF-8"), "Planted"])
            .arg(format!("{how:?}").to_lowercase())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(user) = user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).expect("this is root");
            command.uid(user).gid(user);
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", java.display()));
        let limit = Some(TimeLimit::start(&child, LIMIT));
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut port = None;
        while port.is_none() {
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("it prints text");
            assert!(read > 0, "the JVM ended");
            // Warnings of the JVM come first.
            port = line.trim().parse().ok();
        }
        // What it prints later, such as a thread dump, must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self {
            child,
            limit,
            port: port.unwrap_or_default(),
            folder,
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its requests go: `/heap/1024`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Its working directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for PlantedJvm {
    fn drop(&mut self) {
        self.limit = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
