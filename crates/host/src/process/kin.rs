//! The relatives of a process: its children, its group. From `/proc/PID/stat`, by numbers that the kernel reuses, so a
//! process to be ended is held by a pidfd first and checked then.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{pidfd, running, signal_process};
use crate::error::{Error, Result};
use crate::wait;

/// A process, its descendants, and the group that it leads: the processes that work for it, as long as they keep these
/// ties. One that leaves both (a daemon with its own session) is missed. Never this process. Fails where the process is
/// gone.
pub fn family(pid: u32) -> io::Result<Vec<u32>> {
    let kin: Vec<Kin> = crate::files::list(Path::new("/proc"))?
        .iter()
        .filter_map(|name| {
            // One that has ended since it was listed has no file.
            Kin::read(name.parse().ok()?)
        })
        .collect();
    if !kin.iter().any(|one| one.pid == pid) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let mut family = family_of(pid, &kin);
    family.retain(|member| *member != std::process::id());
    Ok(family)
}

/// The group of a service, to be ended when its leader may be gone. Its number alone is no identity then: it is the
/// group of that number in the leader's session.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    number: u32,
    session: u32,
}

impl Group {
    /// The group that the living process `leader` leads.
    pub fn led_by(leader: u32) -> io::Result<Self> {
        let kin = Kin::read(leader).filter(|kin| kin.group == leader);
        let kin = kin.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        Ok(Self {
            number: leader,
            session: kin.session,
        })
    }

    /// Kills its members, and waits until there are none.
    pub fn end(self, within: Duration) -> Result<()> {
        end_all(|| self.members(), within).map_err(Error::system(format!(
            "end the process group {}",
            self.number
        )))
    }

    /// The descriptor is taken first: if the number is used again in between, it still stands for the process that is gone.
    fn members(self) -> io::Result<Vec<OwnedFd>> {
        let member = |name: &String| {
            let pid = name.parse().ok()?;
            let pidfd = pidfd(pid).ok()?;
            let kin = Kin::read(pid)?;
            // A zombie is no longer a member.
            let is_ours = (kin.group, kin.session) == (self.number, self.session);
            (is_ours && running(pidfd.as_fd())).then_some(pidfd)
        };
        let listed = crate::files::list(Path::new("/proc"))?;
        Ok(listed.iter().filter_map(member).collect())
    }
}

/// Kills all that `living` names, until it names none.
pub(crate) fn end_all(
    living: impl Fn() -> io::Result<Vec<OwnedFd>>,
    within: Duration,
) -> io::Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let all = living()?;
        if all.is_empty() {
            return Ok(());
        }
        for pidfd in &all {
            // A process that has ended meanwhile is the wanted result.
            let _ = signal_process(pidfd.as_fd(), libc::SIGKILL);
        }
        for pidfd in &all {
            let left = deadline.saturating_duration_since(Instant::now());
            if !wait::readable(pidfd.as_fd(), left)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Whose child, of which group, in which session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kin {
    pub(super) pid: u32,
    pub(super) parent: u32,
    group: u32,
    session: u32,
    /// Clock ticks after the start of the machine.
    pub(super) started: u64,
}

impl Kin {
    pub(super) fn read(pid: u32) -> Option<Self> {
        Self::parse(
            pid,
            &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
        )
    }

    /// Fields 4 to 6 and 22 of `/proc/PID/stat`, counted behind the name, which may hold spaces and brackets.
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        Some(Self {
            pid,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            // Fields 7 to 21 lie between.
            started: fields.nth(15)?.parse().ok()?,
        })
    }
}

fn family_of(leader: u32, kin: &[Kin]) -> Vec<u32> {
    let mut family = vec![leader];
    family.extend(
        kin.iter()
            .filter(|one| one.group == leader && one.pid != leader)
            .map(|one| one.pid),
    );
    // Grows while it is walked, until no process in it has a child outside.
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        for one in kin {
            if one.parent == parent && !family.contains(&one.pid) {
                family.push(one.pid);
            }
        }
        next += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(pid: u32, parent: u32, group: u32) -> Kin {
        Kin {
            pid,
            parent,
            group,
            session: 1,
            started: 0,
        }
    }

    #[test]
    fn a_family_is_the_group_and_all_descendants() {
        let all = [
            kin(1, 0, 1),
            kin(10, 1, 10),
            kin(11, 10, 10),
            // Its parent is gone, its group is not.
            kin(12, 1, 10),
            // A group of its own, below one of ours.
            kin(13, 12, 13),
            kin(14, 13, 13),
            kin(20, 1, 20),
        ];
        let mut family = family_of(10, &all);
        family.sort_unstable();
        assert_eq!(family, [10, 11, 12, 13, 14]);
        // Not the leader: its group is somebody else's.
        assert_eq!(family_of(11, &all), [11]);
    }

    #[test]
    fn kin_are_read_behind_any_name() {
        let stat = "7 (a ) b (c) S 3 5 6 0 -1 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23";
        let one = Kin::parse(7, stat).unwrap();
        assert_eq!((one.parent, one.group, one.session), (3, 5, 6));
        assert_eq!(one.started, 4711);
        assert!(Kin::parse(7, "7 (a").is_none() && Kin::parse(7, "").is_none());
    }

    #[test]
    fn a_process_that_is_gone_has_no_family() {
        assert!(family(u32::MAX / 2).is_err());
    }
}
