//! What is used up: the bytes and inodes of file systems, a user's processes; and file systems with errors.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make and remove the files that they need"
)]

use std::path::Path;

use super::lab::{Lab, Loop, Planted, Small, shell_in};
use super::process::start;
use super::{Fault, How, Result, acts};

pub(super) const FULL: Fault = Fault {
    id: "full file system",
    planted: "A file system of 4 MiB of which no byte is left.",
    speaks: &[acts("disk-full", "mount/*")],
    may: &[],
    how: How::Here(full),
};

fn full(_: &Path) -> Result<Planted> {
    // Before the namespaces are made: each has the mounts of that moment.
    let small = Small::new(4 << 20, 100)?;
    let Lab { server, client } = Lab::new()?;
    let written = std::fs::write(small.point.join("log"), vec![b'x'; 8 << 20]);
    if written.is_ok() {
        return Err("the small file system took more than its size".into());
    }
    Ok(Planted::in_namespace(server).keep(small).keep(client))
}

pub(super) const PRIVATE: Fault = Fault {
    id: "full file system of a mount namespace",
    planted: "A tmpfs of 256 KiB that only a service has, in a mount namespace of its own, as /dev/shm of a container; it is full.",
    speaks: &[acts("disk-full", "mount//proc/PID/root/*")],
    may: &[],
    how: How::Here(private),
};

fn private(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let folder = tempfile::tempdir()?;
    let point = folder
        .path()
        .to_str()
        .ok_or("the path is no text")?
        .to_owned();
    let mounts = r#"mount -t tmpfs -o size=256k none "$1" && exec perl -e 'while (1) { open my $log, ">>", "$ARGV[0]/log"; syswrite $log, "x" x 65536; select undef, undef, undef, 0.0005 }' "$1""#;
    let service = start(
        &server,
        &[
            "unshare",
            "-m",
            "--propagation",
            "private",
            "sh",
            "-c",
            mounts,
            "sh",
            &point,
        ],
    )?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(service)
        .keep(folder)
        .keep(client))
}

pub(super) const INODES: Fault = Fault {
    id: "no inodes left",
    planted: "A file system with room for 4 MiB and no further file.",
    speaks: &[acts("disk-full", "mount/*")],
    may: &[],
    how: How::Here(inodes),
};

fn inodes(_: &Path) -> Result<Planted> {
    // Before the namespaces are made: each has the mounts of that moment.
    let small = Small::new(4 << 20, 200)?;
    let Lab { server, client } = Lab::new()?;
    let mut number = 0;
    while std::fs::write(small.point.join(number.to_string()), b"").is_ok() {
        number += 1;
        if number > 1000 {
            return Err("the small file system took more files than it may".into());
        }
    }
    Ok(Planted::in_namespace(server).keep(small).keep(client))
}

pub(super) const USER_TASKS: Fault = Fault {
    id: "no more processes of a user",
    planted: "A program of a user that may have 20 processes and threads (RLIMIT_NPROC), which wants more, 20 times a second.",
    speaks: &[acts("tasks-full", "process/*")],
    may: &[],
    how: How::Here(user_tasks),
};

fn user_tasks(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    // A user that has no other process.
    let become_user = [
        "setpriv",
        "--reuid",
        "61834",
        "--regid",
        "61834",
        "--clear-groups",
    ];
    let script = "while (1) { my $p = fork; if (defined $p && !$p) { sleep 60; exit } select undef, undef, undef, 0.05 }";
    let argv = [
        &["prlimit", "--nproc=20:20"],
        &become_user[..],
        &["perl", "-e", script],
    ];
    let service = start(&server, &argv.concat())?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(service)
        .keep(client))
}

pub(super) const ERRORS: Fault = Fault {
    id: "file system that finds errors",
    planted: "An ext4 file system on a loop device that is told to count an error, ten times a second.",
    speaks: &[acts("disk-errors", "disk/loop*")],
    may: &[],
    how: How::Here(errors),
};

fn errors(_: &Path) -> Result<Planted> {
    let disk = Loop::new()?;
    let Lab { server, client } = Lab::new()?;
    let script = format!(
        "while echo 1 > /sys/fs/ext4/{}/trigger_fs_error; do sleep 0.1; done",
        disk.device
    );
    let trigger = shell_in(&[], &script)?;
    Ok(Planted::in_namespace(server)
        .keep(trigger)
        .keep(disk)
        .keep(client))
}
