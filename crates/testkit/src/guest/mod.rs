//! A small guest with a Linux of its own: control groups of version 2 with every controller, whatever this machine has.
//!
//! QEMU boots a kernel that is only unpacked, with an archive in memory as its file system: programs of this machine, the
//! kernel's modules for a disk and for sockets, and a shell that runs what it is sent. There is no network but its own loopback. KVM
//! is tried first; where it does not run an ordinary kernel (it exists, and cannot, in some guests), QEMU interprets.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs they need and copy files of the machine"
)]

mod archive;

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rungwise_host::clock;

use self::archive::Archive;
use crate::TimeLimit;

const QEMU: &str = "qemu-system-x86_64";

/// A kernel below the folder of packages; `*` is its version.
const KERNEL: &str = "vmlinuz-*-cloud-amd64";

/// Of all that is in a guest, the shell needs these.
const PROGRAMS: [&str; 10] = [
    "base64", "bash", "cat", "ip", "kill", "mkdir", "mount", "perl", "rm", "sleep",
];

/// Modules in the order in which they are loaded. What is missing is part of the kernel, as virtio is since 6.12 in Debian.
const MODULES: [&str; 13] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "inet_diag",
    "tcp_diag",
    "udp_diag",
    "unix_diag",
    "netlink_diag",
    "sch_fq",
];

/// A guest takes 6 s to boot if it is interpreted by a machine that is idle, and up to 31 s where two builds run.
const BOOT: Duration = Duration::from_mins(2);

/// One command in it.
const ANSWER: Duration = Duration::from_mins(2);

/// The whole life of a guest.
const LIFE: Duration = Duration::from_mins(10);

/// A guest that runs. It is killed when dropped.
#[derive(Debug)]
pub struct Guest {
    qemu: Child,
    asked: ChildStdin,
    answers: Receiver<String>,
    folder: PathBuf,
    /// Removes the folder; none while it boots.
    kept: Option<tempfile::TempDir>,
    _limit: TimeLimit,
}

impl Guest {
    /// Boots a guest with 2 CPUs, 768 MiB of memory and an empty disk `vda`, in which `program` and `others` of this machine can be run.
    ///
    /// # Errors
    ///
    /// Why there can be none, for a test to say: no kernel, no QEMU, or a program that is missing.
    ///
    /// # Panics
    /// If it does not boot although all is there.
    #[expect(clippy::panic, reason = "a test that cannot run fails")]
    pub fn boot(program: &Path, others: &[&str]) -> Result<Self, String> {
        let kernel = kernel().ok_or(
            "no kernel to boot: target/packages/boot/vmlinuz-*-cloud-amd64 is missing; cargo xtask test unpacks one",
        )?;
        let qemu = find(QEMU).ok_or(format!("no {QEMU} in PATH; cargo xtask test installs one"))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        files(folder.path(), &kernel, program, others)
            .map_err(|error| format!("cannot make the guest's files: {error}"))?;
        let mut whys = Vec::new();
        // Several threads of the interpreter run code that the kernel changes under them, and panic (QEMU 7.2).
        let ways: &[&str] = if can_open("/dev/kvm") {
            &["kvm", "tcg,thread=single"]
        } else {
            &["tcg,thread=single"]
        };
        for way in ways {
            match Self::start(&qemu, &kernel, way, folder.path()) {
                Ok(mut guest) => {
                    guest.kept = Some(folder);
                    return Ok(guest);
                }
                Err(why) => whys.push(format!("with {way}: {why}")),
            }
        }
        panic!("no guest boots: {}", whys.join("; "))
    }

    fn start(qemu: &Path, kernel: &Path, way: &str, folder: &Path) -> Result<Self, String> {
        let path = |name: &str| folder.join(name).display().to_string();
        let console = format!("file:{}", path("console"));
        let disk = format!(
            "if=none,id=disk,format=raw,cache=unsafe,file={}",
            path("disk")
        );
        let failed = |error: io::Error| error.to_string();
        let errors = File::create(path("errors")).map_err(failed)?;
        let mut qemu = Command::new(qemu)
            .args(["-M", "q35", "-cpu", "max", "-smp", "2", "-m", "768"])
            .args(["-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-display", "none", "-nic", "none", "-accel", way])
            .args(["-serial", &console, "-initrd", &path("initrd")])
            .args(["-append", "console=ttyS0 panic=-1 psi=1 mitigations=off"])
            .args(["-device", "virtio-serial-pci"])
            .args(["-chardev", "stdio,id=port,signal=off"])
            .args(["-device", "virtserialport,chardev=port"])
            .args(["-drive", &disk, "-device", "virtio-blk-pci,drive=disk"])
            .arg("-kernel")
            .arg(kernel)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(failed)?;
        let limit = TimeLimit::start(&qemu, LIFE);
        let (Some(asked), Some(said)) = (qemu.stdin.take(), qemu.stdout.take()) else {
            return Err("its port is not open".to_owned());
        };
        let (lines, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let mut guest = Self {
            qemu,
            asked,
            answers,
            folder: folder.to_owned(),
            kept: None,
            _limit: limit,
        };
        guest.wait_until_up()?;
        Ok(guest)
    }

    fn wait_until_up(&mut self) -> Result<(), String> {
        let since = clock::now();
        while since.elapsed() < BOOT {
            match self.answers.recv_timeout(Duration::from_millis(200)) {
                Ok(_) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("it ended; {}", self.last_words()));
                }
                // A kernel that KVM cannot run leaves a process that waits for ever.
                Err(RecvTimeoutError::Timeout) => {
                    if self.text("errors").contains("internal error") {
                        return Err("KVM cannot run this kernel".to_owned());
                    }
                }
            }
        }
        Err(format!("not up after {BOOT:?}; {}", self.last_words()))
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn last_words(&self) -> String {
        let (console, errors) = (self.text("console"), self.text("errors"));
        let mut last: Vec<&str> = console.lines().rev().take(12).collect();
        last.reverse();
        format!("{errors}{}", last.join("\n"))
    }

    /// Runs a script of bash in the guest: its exit status and all it printed.
    ///
    /// # Panics
    /// If the guest does not answer in time.
    #[expect(clippy::panic, reason = "a test that cannot run fails")]
    pub fn run(&mut self, script: &str) -> (i32, String) {
        let asked = writeln!(self.asked, "{}", BASE64.encode(script));
        let answer = self.answers.recv_timeout(ANSWER);
        let (Ok(()), Ok(answer)) = (asked, answer) else {
            panic!("the guest does not answer {script}\n{}", self.last_words());
        };
        let (status, output) = answer.split_once(' ').unwrap_or((&answer, ""));
        let output = BASE64.decode(output).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        (status.parse().unwrap_or(-1), output)
    }

    fn end(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

fn can_open(device: &str) -> bool {
    File::options().read(true).write(true).open(device).is_ok()
}

/// Folders in which packages are unpacked: below the target folder that this test was built in.
fn unpacked() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let mut folders = test.ancestors().map(|folder| folder.join("packages"));
    folders.find(|folder| folder.is_dir())
}

/// The newest kernel that was unpacked.
fn kernel() -> Option<PathBuf> {
    let entries = fs::read_dir(unpacked()?.join("boot")).ok()?;
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (head, tail) = KERNEL.split_once('*').unwrap_or((KERNEL, ""));
        name.starts_with(head) && name.ends_with(tail)
    };
    let kernels = entries.flatten().map(|entry| entry.path());
    kernels.filter(is_kernel).max()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = unpacked().map(|folder| folder.join("usr/bin"));
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(sbin)
        .chain(own)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// The guest's file system and its disk.
fn files(folder: &Path, kernel: &Path, program: &Path, others: &[&str]) -> io::Result<()> {
    File::create(folder.join("disk"))?.set_len(256 << 20)?;
    let out = BufWriter::new(File::create(folder.join("initrd"))?);
    let mut archive = Archive::new(out);
    for name in [
        "proc",
        "sys",
        "dev",
        "tmp",
        "run",
        "modules",
        "usr/bin",
        "usr/lib",
        "usr/lib64",
    ] {
        archive.folder(Path::new(name))?;
    }
    for (name, to) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        archive.link(name, to)?;
    }
    archive.link("usr/bin/sh", "bash")?;
    archive.file(Path::new("init"), include_bytes!("init.sh"))?;
    for name in PROGRAMS.iter().chain(others) {
        let file =
            find(name).ok_or_else(|| io::Error::other(format!("there is no program {name}")))?;
        archive.program(name, &file)?;
    }
    // Lines of code are most of a debug build, and of the guest's memory.
    let small = folder.join("program");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(&small)
        .arg(program)
        .status();
    let small = match stripped {
        Ok(status) if status.success() => small,
        _ => program.to_owned(),
    };
    archive.program("rungwise", &small)?;
    let _ = fs::remove_file(folder.join("program"));
    let found = MODULES.iter().map(|module| module_file(kernel, module));
    for (at, found) in found.enumerate() {
        let Some(found) = found else {
            continue;
        };
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("modules/{at:02}-{name}");
        archive.file(Path::new(&name), &fs::read(&found)?)?;
    }
    archive.end()
}

/// `lib/modules/VERSION/**/NAME.ko*` beside `boot/vmlinuz-VERSION`.
fn module_file(kernel: &Path, module: &str) -> Option<PathBuf> {
    let version = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    let top = kernel.parent()?.parent()?;
    let tops = ["lib/modules", "usr/lib/modules"].map(|folder| top.join(folder).join(version));
    let mut waiting = Vec::from(tops);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            } else if name.to_string_lossy().split('.').next() == Some(module) {
                return Some(path);
            }
        }
    }
    None
}
