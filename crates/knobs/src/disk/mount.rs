//! Options of a mounted file system: remounting is for whoever owns it.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Scope, Settable};
use crate::turn::Turn;

const REMOUNT: &str =
    "a file system has an owner and an entry in /etc/fstab; remount it and change the entry";

const MOUNT: Knob = Knob {
    scope: Scope::Disk,
    risk: Risk::Disruptive,
    settable: Settable::No(REMOUNT),
    turn: Turn::Unseen,
    ..COMMON
};

/// `disk.discard`
pub(crate) static DISCARD: Knob = Knob {
    id: "disk.discard",
    summary: "whether deleted blocks are told to the disk at once or once a week",
    values: "periodic",
    doc: Doc {
        does: "With the mount option discard every deletion sends commands to the disk; fstrim does it in one go.",
        helps: "periodic, on solid state disks under load that are mounted with discard.",
        costs: "The disk knows later which blocks are free.",
        undone: "The file system is remounted with discard and the timer is disabled.",
        sources: "fstrim(8), mount(8); PerfSpect's insight on file systems.",
    },
    by_hand: &[Manual {
        wish: "periodic",
        way: Way::Command,
        text: "mount -o remount,nodiscard MOUNTPOINT   # and take discard out of its line in /etc/fstab\n\
               systemctl enable --now fstrim.timer",
    }],
    ..MOUNT
};

/// `disk.mount_noatime`
pub(crate) static NOATIME: Knob = Knob {
    id: "disk.mount_noatime",
    summary: "reading a file does not write when it was read",
    values: "on",
    doc: Doc {
        does: "With relatime, the usual option, the time is written at most once a day and after a change.",
        helps: "A little, where many small files are read and metadata is written for it.",
        costs: "Software that relies on the time of the last access (mail, backup) no longer sees it.",
        undone: "The file system is remounted with relatime.",
        sources: "mount(8), option noatime.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::Command,
        text: "mount -o remount,noatime MOUNTPOINT   # and noatime in its line in /etc/fstab",
    }],
    ..MOUNT
};
