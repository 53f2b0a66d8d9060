//! Network namespaces of this machine, with the packets that their devices received.
//!
//! `/proc/PID/net/dev` shows the devices of that process's namespace. Those with the most packets, and those that only a name
//! in `/run/netns` holds, are entered, each by a thread that reads its counters and queues and ends. Others
//! (held by a descriptor or by a thread that is not the first of its process) cannot be found. Source: namespaces(7),
//! `fs/proc/proc_net.c` of Linux 6.18.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rungwise_model::kernel::{Connections, NetworkNamespace, Qdisc};

use super::sockets;
use crate::{namespace, qdisc};

const NAMED: &str = "/run/netns";
/// Where a thread finds the files of the network namespace that it is in.
const IN_IT: &str = "/proc/thread-self/net";
/// Namespaces whose counters are read, those with the most packets: each costs a thread, two files of some kilobytes and two
/// requests to rtnetlink.
const COUNTED: usize = 16;

/// All that can be found, the one of the calling thread included, sorted by inode.
pub(super) fn all() -> io::Result<Vec<NetworkNamespace>> {
    let own = fs::metadata("/proc/thread-self/ns/net")?.ino();
    let mut found = BTreeMap::new();
    found.insert(
        own,
        NetworkNamespace {
            inode: own,
            own: true,
            packets: packets(Path::new("/proc/thread-self/net/dev")),
            ..NetworkNamespace::default()
        },
    );
    for (inode, pid) in first_processes()? {
        if inode == own {
            continue;
        }
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        found.insert(
            inode,
            NetworkNamespace {
                inode,
                own: false,
                pid: Some(pid),
                name: comm.trim().to_owned(),
                container: container(&group),
                packets: packets(Path::new(&format!("/proc/{pid}/net/dev"))),
                ..NetworkNamespace::default()
            },
        );
    }
    let mut links: BTreeMap<u64, PathBuf> = found
        .values()
        .filter(|other| !other.own)
        .filter_map(|other| Some((other.inode, format!("/proc/{}/ns/net", other.pid?).into())))
        .collect();
    for entry in fs::read_dir(NAMED).into_iter().flatten().flatten() {
        let Ok(inode) = fs::metadata(entry.path()).map(|meta| meta.ino()) else {
            continue;
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        let known = found.entry(inode).or_insert_with(|| {
            let devices = || fs::read_to_string(format!("{IN_IT}/dev"));
            let devices = namespace::read_in(&entry.path(), devices).and_then(|read| read);
            links.insert(inode, entry.path());
            NetworkNamespace {
                inode,
                packets: devices.ok().and_then(|text| received(&text)),
                ..NetworkNamespace::default()
            }
        });
        if known.pid.is_none() {
            known.name = name;
        }
    }
    let mut busiest: Vec<&mut NetworkNamespace> =
        found.values_mut().filter(|other| !other.own).collect();
    busiest.sort_by_key(|other| (Reverse(other.packets), other.inode));
    for other in busiest.into_iter().take(COUNTED) {
        if other.packets > Some(0) {
            read_counters(other, links.get(&other.inode));
        }
    }
    Ok(found.into_values().collect())
}

/// What leads to each of the other namespaces, by inode: its first process, or its name.
pub(super) fn others() -> io::Result<BTreeMap<u64, PathBuf>> {
    let own = fs::metadata("/proc/thread-self/ns/net")?.ino();
    let of_process = |(inode, pid)| (inode, format!("/proc/{pid}/ns/net").into());
    let mut links: BTreeMap<u64, PathBuf> =
        first_processes()?.into_iter().map(of_process).collect();
    for entry in fs::read_dir(NAMED).into_iter().flatten().flatten() {
        if let Ok(meta) = fs::metadata(entry.path()) {
            links.entry(meta.ino()).or_insert_with(|| entry.path());
        }
    }
    links.remove(&own);
    Ok(links)
}

/// The process with the lowest pid in each namespace, by inode.
fn first_processes() -> io::Result<BTreeMap<u64, u32>> {
    let mut first = BTreeMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // Of another user's process the link cannot be read, and its namespace stays unknown.
        let Ok(link) = fs::read_link(format!("/proc/{pid}/ns/net")) else {
            continue;
        };
        if let Some(inode) = link.to_str().and_then(inode_of) {
            let lowest = first.entry(inode).or_insert(pid);
            *lowest = (*lowest).min(pid);
        }
    }
    Ok(first)
}

/// Reads what only a thread in the namespace sees. What could not be read stays absent.
fn read_counters(other: &mut NetworkNamespace, link: Option<&PathBuf>) {
    // The process may have ended, and its number may be another's.
    let is_it = |link: &&PathBuf| fs::metadata(link).is_ok_and(|meta| meta.ino() == other.inode);
    let Some(link) = link.filter(is_it) else {
        return;
    };
    if let Ok((counters, qdiscs, connections)) = namespace::read_in(link, counters) {
        other.counters = counters;
        other.qdiscs = qdiscs;
        other.connections = connections;
    } else if let Some(pid) = other.pid {
        // Without the right to enter it, its process shows its protocol counters.
        other.counters = protocols(&format!("/proc/{pid}/net"));
    }
}

/// Counters, root queues and connections of the namespace of the calling thread.
fn counters() -> (String, Option<Vec<Qdisc>>, Option<Connections>) {
    let qdiscs = qdisc::list().ok().map(|mut qdiscs| {
        qdiscs.retain(|qdisc| qdisc.parent == "root" && qdisc.kind != "noqueue");
        qdiscs
    });
    (protocols(IN_IT), qdiscs, connections())
}

fn protocols(folder: &str) -> String {
    let read = |name| fs::read_to_string(format!("{folder}/{name}"));
    ["snmp", "netstat"].into_iter().flat_map(read).collect()
}

/// Its established connections; of very many only their number, since each takes half a microsecond to read.
fn connections() -> Option<Connections> {
    const ESTABLISHED: u8 = 1;
    const MOST: u32 = 4096;
    let in_use = in_use()?;
    if in_use > MOST {
        return Some(Connections {
            count: in_use,
            rtt_us: None,
        });
    }
    let sockets = sockets::tcp_in_use().ok()?;
    let established = || sockets.iter().filter(|socket| socket.state == ESTABLISHED);
    let mut rtts: Vec<u32> = established()
        .filter_map(|socket| Some(socket.info.as_ref()?.rtt))
        .collect();
    rtts.sort_unstable();
    Some(Connections {
        count: established().count() as u32,
        rtt_us: rtts.get(rtts.len() / 2).copied(),
    })
}

/// TCP sockets in use, of both families: `TCP: inuse 9 orphan 0 ...` and `TCP6: inuse 3`.
fn in_use() -> Option<u32> {
    let of = |file: &str, name: &str| {
        let text = fs::read_to_string(format!("{IN_IT}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u32>().ok()
    };
    // Without IPv6 there is no second file.
    Some(of("sockstat", "TCP: inuse ")? + of("sockstat6", "TCP6: inuse ").unwrap_or(0))
}

/// `net:[4026531840]`
fn inode_of(link: &str) -> Option<u64> {
    link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

fn packets(path: &Path) -> Option<u64> {
    received(&fs::read_to_string(path).ok()?)
}

/// Packets received by all devices: the second column of `/proc/net/dev`.
fn received(text: &str) -> Option<u64> {
    let mut sum = None;
    for line in text.lines() {
        if let Some((_, numbers)) = line.split_once(':')
            && let Some(packets) = numbers.split_ascii_whitespace().nth(1)
            && let Ok(packets) = packets.parse::<u64>()
        {
            sum = Some(sum.unwrap_or(0_u64).saturating_add(packets));
        }
    }
    sum
}

/// The container that a control group belongs to: the first twelve digits of the id of 64 that Docker, containerd, CRI-O
/// and Podman name the group after.
fn container(groups: &str) -> String {
    let digits = |run: &&str| run.len() == 64 && run.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(digits)
        .map(|id| id[..12].to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_all_devices_are_added_up() {
        let text = "Inter-|   Receive\n face |bytes    packets errs\n    lo: 10 2 0 0\n  eth0:20000 40 0 0\n";
        assert_eq!(received(text), Some(42));
        assert_eq!(received("Inter-|\n"), None);
        assert_eq!(inode_of("net:[4026531840]"), Some(4_026_531_840));
    }

    #[test]
    fn a_container_is_known_by_the_id_in_its_group() {
        let id = "4f3c".repeat(16);
        for path in [
            format!("0::/system.slice/docker-{id}.scope\n"),
            format!("4:cpu:/docker/{id}\n"),
            format!("0::/kubepods.slice/cri-containerd-{id}.scope"),
        ] {
            assert_eq!(container(&path), "4f3c4f3c4f3c");
        }
        assert_eq!(container("0::/system.slice/nginx.service\n"), "");
    }
}
