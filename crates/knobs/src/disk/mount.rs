//! Options of a mounted file system. It is named by its mount point; its entry in /etc/fstab is not changed.

use rungwise_host::{MountOption, Mounted};

use crate::edit::{Edit, Mount, Place};
use crate::error::{Error, Result};
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Reading, Risk, Scope};
use crate::target::Target;
use crate::turn::Turn;

const MOUNT: Knob = Knob {
    scope: Scope::Disk,
    risk: Risk::Disruptive,
    ..COMMON
};

/// `disk.discard`
pub(crate) static DISCARD: Knob = Knob {
    id: "disk.discard",
    summary: "whether deleted blocks are trimmed at once or once a week",
    values: "online (with each deletion) or periodic (by fstrim alone)",
    doc: Doc {
        does: "With the mount option discard, every deletion sends commands to the disk; fstrim sends them in one \
               batch. Name the file system by its mount point: --device /data. All of its mounts change.",
        helps: "periodic, on solid state disks under load that are mounted with discard.",
        costs: "The disk learns later which blocks are free, and never if nothing runs fstrim. Only ext4 can be \
                changed: xfs takes the option only when it is mounted, f2fs loses others with it, btrfs has a third \
                value.",
        undone: "The file system is reconfigured with its previous option.",
        sources: "fstrim(8), mount(8), fsconfig(2); fs/ext4/super.c (Linux 6.18); PerfSpect's insight on file systems.",
    },
    writes: &[Target::Mount(MountOption::Discard)],
    turn: Turn::Own {
        read: |context| read(&DISCARD, context, MountOption::Discard, wish_of),
        draft: draft_discard,
    },
    ..MOUNT
};

/// `disk.mount_noatime`
pub(crate) static NOATIME: Knob = Knob {
    id: "disk.mount_noatime",
    summary: "when a read updates a file's access time",
    values: "noatime (never), relatime (once a day and after a change) or strictatime (always)",
    doc: Doc {
        does: "This rule decides when a read of a file writes its last access time. Name the mount by its mount point: \
               --device /data. Other mounts of the same file system are unchanged.",
        helps: "noatime helps a little where many small files are read and each read writes metadata.",
        costs: "Software that relies on access times (mail, backup) no longer sees them.",
        undone: "The mount's previous value is set again; its other flags are never changed.",
        sources: "mount(8), mount_setattr(2) (Linux 5.12 and later).",
    },
    writes: &[Target::Mount(MountOption::Atime)],
    turn: Turn::Own {
        read: |context| read(&NOATIME, context, MountOption::Atime, |value| value),
        draft: draft_atime,
    },
    ..MOUNT
};

fn read(
    knob: &Knob,
    context: &Context<'_>,
    option: MountOption,
    wish: fn(&'static str) -> &'static str,
) -> Result<Current> {
    let (mount, found) = mounted(knob, context)?;
    let value = found.option(option);
    let reading = Reading {
        source: format!("{} at {}", found.kind, mount.point),
        value: value.to_owned(),
    };
    Ok(Current::known(wish(value), vec![reading]))
}

fn draft_atime(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (mount, _) = mounted(&NOATIME, context)?;
    if !MountOption::Atime.values().contains(&wish) {
        return Err(NOATIME.bad_wish(wish, "it is not one of the three"));
    }
    let draft = edit(mount, MountOption::Atime, wish);
    Ok(draft.note(format!(
        "it lasts until the unmount; to keep it, put {wish} in its line in /etc/fstab"
    )))
}

fn draft_discard(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (mount, found) = mounted(&DISCARD, context)?;
    let value = match wish {
        "online" => "discard",
        "periodic" => "nodiscard",
        _ => return Err(DISCARD.bad_wish(wish, "it is neither of the two")),
    };
    if !found.takes_discard() {
        let why = format!(
            "{} is {}, and only ext4 can be changed while mounted; if the type has that option, put {value} in its line in \
             /etc/fstab, unmount it and mount it again",
            mount.point, found.kind
        );
        return Err(DISCARD.bad_wish(wish, why));
    }
    let draft = edit(mount, MountOption::Discard, value);
    Ok(draft.note(match wish {
        "online" => "to keep it, put discard in its line in /etc/fstab",
        _ => {
            "enable periodic trimming: systemctl enable --now fstrim.timer; to keep it, remove discard from its line \
             in /etc/fstab"
        }
    }))
}

fn edit(mount: Mount, option: MountOption, value: &str) -> Draft {
    let edit = Edit::Mount {
        mount,
        option,
        value: value.to_owned(),
    };
    Draft::default().edit(&Place::Host, edit)
}

fn wish_of(value: &'static str) -> &'static str {
    match value {
        "discard" => "online",
        _ => "periodic",
    }
}

/// The mount at the named mount point.
fn mounted(knob: &Knob, context: &Context<'_>) -> Result<(Mount, Mounted)> {
    let failed = |answer| {
        Error::kernel(
            knob.id,
            "read the list of mounts".to_owned(),
            context.machine.name(),
            answer,
        )
    };
    if let Some(point) = context.device
        && let Some(found) = Mount::find(context.machine, point).map_err(failed)?
    {
        return Ok(found);
    }
    let mounts = context.machine.mounts().map_err(failed)?;
    let on_a_disk = mounts
        .into_iter()
        .filter(|mount| mount.source.starts_with('/'));
    let mut known: Vec<String> = on_a_disk.map(|mount| mount.point).collect();
    known.dedup();
    Err(Error::NoDevice {
        knob: knob.id,
        why: match context.device {
            Some(point) => format!("nothing is mounted at {point}"),
            None => "it needs a mounted file system, named by its mount point".to_owned(),
        },
        known,
    })
}
