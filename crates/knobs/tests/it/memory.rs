//! A journal in memory that shares a fuse with the machines: a crash may fall into a line.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rungwise_host::Host;
use rungwise_host::recorded::{Fuse, Recorded};
use rungwise_knobs::edit::Places;
use rungwise_knobs::engine::Keeper;
use rungwise_knobs::journal::{Header, Log, VERSION};
use rungwise_knobs::{Context, Place, Plan, Scope};
use rungwise_testkit::{BOOT_ID, DEVICE};

use crate::machine::{DISK, GROUP, MOUNT_POINT, everything};

/// What is on the disk.
pub(crate) type Disk = Arc<Mutex<Vec<u8>>>;

pub(crate) struct MemoryLog {
    pub(crate) disk: Disk,
    pub(crate) fuse: Option<Arc<Fuse>>,
    /// Bytes of the line that a crash leaves behind, at most.
    pub(crate) torn: usize,
    /// The disk is full.
    pub(crate) full: bool,
}

impl Log for MemoryLog {
    fn append(&mut self, lines: &[u8], _durable: bool) -> io::Result<()> {
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut disk = self.disk.lock().unwrap();
        if let Some(fuse) = &self.fuse {
            if fuse.blown() {
                return Err(io::Error::other("crashed before"));
            }
            if let Err(error) = fuse.step() {
                disk.extend(&lines[..self.torn.min(lines.len())]);
                return Err(error);
            }
            if fuse.blown() {
                // The crash falls into this append.
                disk.extend(&lines[..self.torn.min(lines.len())]);
                return Err(io::Error::other("crashed"));
            }
        }
        disk.extend(lines);
        Ok(())
    }
}

/// A host and a lab's namespace.
pub(crate) struct Machines {
    pub(crate) host: Arc<Recorded>,
    pub(crate) server: Arc<Recorded>,
}

pub(crate) fn server() -> Place {
    Place::Namespace("server".to_owned())
}

impl Machines {
    pub(crate) fn new() -> Self {
        Self {
            host: Arc::new(everything("this host", 1)),
            server: Arc::new(everything("namespace server", 2)),
        }
    }

    pub(crate) fn places(&self) -> Places {
        Places::host(self.host.clone() as Arc<dyn Host>)
            .with(server(), self.server.clone() as Arc<dyn Host>)
    }

    pub(crate) fn arm(&self, fuse: Option<&Arc<Fuse>>) {
        self.host.arm(fuse.cloned());
        self.server.arm(fuse.cloned());
    }

    pub(crate) fn snapshot(&self) -> Vec<(String, String)> {
        self.host
            .snapshot()
            .into_iter()
            .chain(self.server.snapshot())
            .collect()
    }

    /// A plan in the lab's namespace.
    pub(crate) fn plan(&self, id: &str, wish: &str) -> Plan {
        let place = server();
        let context = Context {
            machine: &*self.host,
            here: &*self.server,
            place: &place,
            device: Some(subject(id)),
            cpus: &[0, 1],
        };
        rungwise_knobs::find(id)
            .unwrap()
            .plan(&context, wish)
            .unwrap()
    }

    /// A plan on the host.
    pub(crate) fn plan_host(&self, id: &str, wish: &str) -> Plan {
        let context = Context::of_host(&*self.host, Some(subject(id)), &[0, 1]);
        rungwise_knobs::find(id)
            .unwrap()
            .plan(&context, wish)
            .unwrap()
    }
}

/// What a knob is about on the invented machine.
pub(crate) fn subject(id: &str) -> &'static str {
    match rungwise_knobs::find(id).unwrap().scope {
        _ if ["disk.discard", "disk.mount_noatime"].contains(&id) => MOUNT_POINT,
        Scope::Cgroup => GROUP,
        Scope::Disk => DISK,
        _ => DEVICE,
    }
}

pub(crate) fn header() -> Header {
    Header {
        version: VERSION,
        tool: "0.1.0".to_owned(),
        boot_id: BOOT_ID.to_owned(),
        pid: 1,
        started_ticks: 1,
        command: vec!["test".to_owned()],
        created: "2026-11-21T13:15:00Z".to_owned(),
        purpose: "test".to_owned(),
    }
}

pub(crate) fn keeper(disk: &Disk) -> Keeper<MemoryLog> {
    let log = MemoryLog {
        disk: disk.clone(),
        fuse: None,
        torn: 0,
        full: false,
    };
    Keeper::begin(log, PathBuf::from("journal"), header()).unwrap()
}

/// The wish that a person fulfils, with an example for what it leaves open.
pub(crate) fn an_example(wish: &str) -> String {
    match wish {
        "CPUS" => "2-3,8",
        "NUMBER" => "4",
        "SIZE" => "512m",
        "FLAGS" => "-XX:+CMSScavengeBeforeRemark",
        "without FLAGS" => "without -Xmn300m -XX:NewRatio=3",
        "PATH" => "/srv/dump",
        "JAVA" => "/opt/jdk/bin/java",
        wish => wish,
    }
    .to_owned()
}
