//! Masks what must not leave the machine: secrets always, addresses and names on request.
//!
//! Bundles are passed to third parties. Probes read no environment, and of command lines only the state in the title of
//! a `PostgreSQL` backend; an administrator may still have put a secret elsewhere, most likely on the kernel command
//! line. A secret is found by the name before it, as in other secret scanners, and its value is replaced. Addresses are
//! replaced one for one, so that equal addresses stay equal.

mod secret;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rungwise_formats::smbios;
use rungwise_model::kernel::{Answer, TcpSocket};

use crate::capture::{Capture, Raw, Reply};
use crate::process::waiters::STACK;
pub use secret::MASKED;

/// The firmware's tables, which hold serial numbers and the UUID of the machine.
const SMBIOS: &str = "/sys/firmware/dmi/tables/DMI";

/// Masks secrets in every text of the capture, in names of files, tasks and the machine as well.
pub fn secrets(capture: &mut Capture) {
    let machine = &mut capture.machine;
    hide(&mut machine.hostname);
    hide(&mut machine.cpu_model);
    if let Some(process) = &mut capture.process {
        hide(&mut process.name);
    }
    for moment in capture.all_mut() {
        if let Some(Raw::Text(table)) = moment.files.get_mut(SMBIOS) {
            *table = smbios::without_identity(table).unwrap_or_default();
        }
        for (path, raw) in &mut moment.files {
            let (Raw::Text(text) | Raw::Failed { failed: text }) = raw;
            if !is_stack(path) {
                hide(text);
            }
            if path.ends_with("/numa_maps") {
                *text = without_files(text);
            }
        }
        rename(&mut moment.files, secret::hidden, first);
        for reply in moment.answers.values_mut() {
            match reply {
                Reply::Failed(why) => hide(why),
                Reply::Answer(Answer::Unix(listeners)) => {
                    for listener in listeners {
                        hide(&mut listener.name);
                    }
                }
                Reply::Answer(Answer::Owners(owners)) => {
                    for owner in owners.values_mut() {
                        hide(&mut owner.name);
                    }
                }
                Reply::Answer(Answer::Namespaces(namespaces)) => {
                    for namespace in namespaces {
                        hide(&mut namespace.name);
                    }
                }
                Reply::Answer(Answer::Stacks(stacks)) => {
                    rename(&mut stacks.folded, secret::hidden, add);
                }
                Reply::Answer(Answer::Settings(settings)) => {
                    for setting in settings {
                        hide(&mut setting.target);
                        hide(&mut setting.wanted);
                        setting.found.iter_mut().for_each(hide);
                    }
                }
                Reply::Answer(Answer::Load(load)) => {
                    let client = load.client.iter_mut();
                    client.flat_map(|client| &mut client.reasons).for_each(hide);
                }
                Reply::Answer(_) => {}
            }
        }
    }
}

/// Names of functions, where `TokenBucket::acquire` announces no secret and `db::add` is no address.
fn is_stack(path: &str) -> bool {
    path.ends_with(STACK)
}

/// A process's mappings without file names: no rule needs them, and the kernel escapes them so (`\075` for
/// `=`) that no secret is found in them.
fn without_files(maps: &str) -> String {
    let mut named = maps.split("file=");
    let mut nameless = named.next().unwrap_or_default().to_owned();
    for rest in named {
        nameless.push_str("file=");
        nameless.push_str(MASKED);
        nameless.push_str(&rest[rest.find(char::is_whitespace).unwrap_or(rest.len())..]);
    }
    nameless
}

fn hide(text: &mut String) {
    if let Some(hidden) = secret::hidden(text) {
        *text = hidden;
    }
}

/// Gives entries new names where `name` has one; `join` puts a second entry of one name to the first.
fn rename<V>(
    map: &mut BTreeMap<String, V>,
    mut name: impl FnMut(&str) -> Option<String>,
    join: impl Fn(&mut V, V),
) {
    for (old, value) in std::mem::take(map) {
        match map.entry(name(&old).unwrap_or(old)) {
            Entry::Vacant(free) => {
                free.insert(value);
            }
            Entry::Occupied(mut taken) => join(taken.get_mut(), value),
        }
    }
}

/// Of two files whose names differ in what is masked, one is as good as the other.
fn first<V>(_: &mut V, _: V) {}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

/// Replaces addresses, MAC addresses and the host name by placeholders, consistently.
pub fn addresses(capture: &mut Capture) {
    let hostname = std::mem::replace(&mut capture.machine.hostname, HOST.to_owned());
    let mut known = StandIns {
        // A shorter one may be a part of anything.
        hostname: Some(hostname).filter(|name| name.len() > 2),
        ..StandIns::default()
    };
    if let Some(process) = &mut capture.process {
        process.name = known.in_text(&process.name);
    }
    if let Some(service) = &mut capture.service {
        for port in &mut service.ports {
            port.address = port.address.map(|address| known.address(address));
        }
        for sample in &mut service.samples {
            known.in_sockets(&mut sample.sockets);
            known.in_sockets(&mut sample.elsewhere);
        }
    }
    for moment in capture.all_mut() {
        rename(
            &mut moment.files,
            |path| Some(known.addresses_in(path)),
            first,
        );
        for (path, raw) in &mut moment.files {
            let (Raw::Text(text) | Raw::Failed { failed: text }) = raw;
            *text = if path == "/proc/sys/kernel/hostname" {
                format!("{HOST}\n")
            } else if is_stack(path) {
                known.host_in(text)
            } else {
                known.in_text(text)
            };
        }
        for reply in moment.answers.values_mut() {
            match reply {
                Reply::Answer(answer) => known.in_answer(answer),
                Reply::Failed(why) => *why = known.in_text(why),
            }
        }
    }
}

/// The host name's stand-in.
const HOST: &str = "masked-host";

/// What udev puts before the hardware address in the name of a device: Ethernet, wireless, mobile.
const NAMED_AFTER: [&str; 3] = ["enx", "wlx", "wwx"];

/// Stand-ins given so far.
#[derive(Default)]
struct StandIns {
    v4: BTreeMap<Ipv4Addr, Ipv4Addr>,
    v6: BTreeMap<Ipv6Addr, Ipv6Addr>,
    mac: BTreeMap<String, String>,
    hostname: Option<String>,
}

impl StandIns {
    fn in_answer(&mut self, answer: &mut Answer) {
        match answer {
            Answer::Tcp(sockets) => self.in_sockets(sockets),
            Answer::Udp(sockets) => {
                for socket in sockets {
                    socket.local.address = self.address(socket.local.address);
                    socket.remote.address = self.address(socket.remote.address);
                }
            }
            Answer::Unix(listeners) => {
                for listener in listeners {
                    listener.name = self.in_text(&listener.name);
                }
            }
            Answer::Devices(devices) => {
                for device in devices {
                    device.name = self.in_text(&device.name);
                }
            }
            Answer::Qdiscs(qdiscs) => {
                for qdisc in qdiscs {
                    qdisc.device = self.in_text(&qdisc.device);
                }
            }
            Answer::Neighbours(neighbours) => {
                for neighbour in &mut neighbours.unanswered {
                    neighbour.device = self.in_text(&neighbour.device);
                    neighbour.address = self.address(neighbour.address);
                }
            }
            Answer::Namespaces(namespaces) => {
                for namespace in namespaces {
                    namespace.name = self.in_text(&namespace.name);
                    for qdisc in namespace.qdiscs.iter_mut().flatten() {
                        qdisc.device = self.in_text(&qdisc.device);
                    }
                }
            }
            Answer::Settings(settings) => {
                for setting in settings {
                    setting.target = self.in_text(&setting.target);
                }
            }
            Answer::Owners(owners) => {
                for owner in owners.values_mut() {
                    owner.name = self.in_text(&owner.name);
                }
            }
            Answer::Mounts(mounts) => {
                for mount in mounts {
                    mount.point = self.in_text(&mount.point);
                }
            }
            // Kernel functions, and names of tasks before them.
            Answer::Stacks(stacks) => {
                rename(&mut stacks.folded, |stack| Some(self.host_in(stack)), add);
            }
            Answer::Netfilter(_)
            | Answer::Audit(_)
            | Answer::Events(_)
            | Answer::Tlb(_)
            | Answer::Load(_) => {}
        }
    }

    fn in_sockets(&mut self, sockets: &mut [TcpSocket]) {
        for socket in sockets {
            socket.local.address = self.address(socket.local.address);
            socket.remote.address = self.address(socket.remote.address);
        }
    }

    /// Addresses and the host name.
    fn in_text(&mut self, text: &str) -> String {
        let masked = self.addresses_in(text);
        self.host_in(&masked)
    }

    fn host_in(&self, text: &str) -> String {
        match &self.hostname {
            Some(name) if text.contains(name.as_str()) => text.replace(name, HOST),
            _ => text.to_owned(),
        }
    }

    /// Every run of characters that an address may be made of is tried as one.
    fn addresses_in(&mut self, text: &str) -> String {
        let of_address = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(of_address) {
            masked.push_str(&rest[..start]);
            let run = &rest[start..];
            let length = run.find(|c| !of_address(c)).unwrap_or(run.len());
            if let Some(length) = dashed(run) {
                let digits = run[length - 17..length].replace('-', "");
                masked.push_str(&run[..length - 17]);
                masked.push_str(&joined(&self.device_address(&digits), "-"));
                rest = &run[length..];
                continue;
            }
            // enx525400c0ffee
            let digits = run.bytes().take_while(u8::is_ascii_hexdigit).count();
            if digits == 12 && NAMED_AFTER.iter().any(|kind| masked.ends_with(kind)) {
                masked.push_str(&self.device_address(&run[..12]));
                rest = &run[12..];
                continue;
            }
            masked.push_str(&self.stand_in(&run[..length]));
            rest = &run[length..];
        }
        masked.push_str(rest);
        masked
    }

    fn stand_in(&mut self, run: &str) -> String {
        if run.len() < 2 {
            return run.to_owned();
        }
        if let Ok(address) = run.parse::<IpAddr>() {
            return self.address(address).to_string();
        }
        // `10.0.0.1:80`: the port stays.
        if let Some((address, port)) = run.rsplit_once(':')
            && let Ok(address) = address.parse::<IpAddr>()
        {
            return format!("{}:{port}", self.address(address));
        }
        if run.len() == 17 && run.split(':').filter(|part| part.len() == 2).count() == 6 {
            return joined(&self.device_address(&run.replace(':', "")), ":");
        }
        // `ip=10.0.0.2::10.0.0.1:255.255.255.0:...`, as the kernel command line has it.
        if run.contains(':') && run.contains('.') {
            let mut parts = Vec::new();
            for part in run.split(':') {
                parts.push(match part.parse::<Ipv4Addr>() {
                    Ok(address) => self.address(address.into()).to_string(),
                    Err(_) => part.to_owned(),
                });
            }
            return parts.join(":");
        }
        run.to_owned()
    }

    /// A stand-in for the twelve digits of a hardware address, of those for local use (IEEE 802).
    fn device_address(&mut self, digits: &str) -> String {
        let next = self.mac.len() + 1;
        self.mac
            .entry(digits.to_ascii_lowercase())
            .or_insert_with(|| format!("02{next:010x}"))
            .clone()
    }

    fn address(&mut self, address: IpAddr) -> IpAddr {
        match address {
            // These tell nothing about anybody.
            IpAddr::V4(v4) if v4.is_loopback() || v4.is_unspecified() || v4.is_broadcast() => {
                address
            }
            IpAddr::V6(v6) if v6.is_loopback() || v6.is_unspecified() => address,
            IpAddr::V4(v4) => {
                // 240.0.0.0/4 is reserved (RFC 1112): a stand-in is never somebody's address.
                let next = 0xf000_0001 + self.v4.len() as u32;
                (*self.v4.entry(v4).or_insert_with(|| next.into())).into()
            }
            IpAddr::V6(v6) => {
                // 2001:db8::/32 is for documentation (RFC 3849).
                let next = (0x2001_0db8_u128 << 96) + 1 + self.v6.len() as u128;
                (*self.v6.entry(v6).or_insert_with(|| next.into())).into()
            }
        }
    }
}

/// Bytes of a hardware address at the start of `text` that is written with dashes, as boot loaders do: `52-54-00-c0-ff-ee`,
/// or with the kind of the hardware before it (`BOOTIF=01-52-54-00-c0-ff-ee`).
fn dashed(text: &str) -> Option<usize> {
    let digit = |byte: &u8| byte.is_ascii_hexdigit();
    let run = text.bytes().take_while(|byte| digit(byte) || *byte == b'-');
    let length = run.count();
    let mut parts = text.as_bytes()[..length].split(|byte| *byte == b'-');
    let whole = parts.all(|part| part.len() == 2);
    (whole && matches!(length, 17 | 20)).then_some(length)
}

/// The twelve digits of a hardware address with `between` each two.
fn joined(digits: &str, between: &str) -> String {
    let mut parts = digits.as_bytes().chunks(2);
    std::iter::from_fn(|| parts.next().map(String::from_utf8_lossy))
        .collect::<Vec<_>>()
        .join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Moment;

    #[test]
    fn addresses_get_the_same_stand_in_each_time() {
        let mut known = StandIns::default();
        let text = known.in_text(
            "192.168.7.9 via 192.168.7.1 dev eth0, 192.168.7.9:80 [fe80::1]:53 lo 127.0.0.1",
        );
        assert!(
            !text.contains("192.168") && !text.contains("fe80"),
            "{text}"
        );
        let first = text.split(' ').next().unwrap();
        assert!(text.contains(&format!("{first}:80")), "{text}");
        assert!(
            text.ends_with("127.0.0.1") && text.contains("eth0"),
            "{text}"
        );
        assert_eq!(known.in_text("52:54:00:aa:bb:cc"), "02:00:00:00:00:01");
        assert_eq!(known.in_text("enx525400AABBCC: 1"), "enx020000000001: 1");
        assert_eq!(known.in_text("wlx525400AABBCC"), "wlx020000000001");
        let line = known.in_text("BOOTIF=01-52-54-00-aa-bb-cc 2026-11-22");
        assert_eq!(line, "BOOTIF=01-02-00-00-00-00-01 2026-11-22");
        let line = known.in_text("ip=10.9.8.7::10.9.8.1:255.255.255.0:h:eth0");
        assert!(
            !line.contains("10.9.8") && line.ends_with(":h:eth0"),
            "{line}"
        );
    }

    #[test]
    fn names_of_mapped_files_stay_at_home() {
        let maps = "7f00 default file=/a/token\\075x mapped=5 N0=5\n7fff default stack N0=1\n";
        let nameless = "7f00 default file=(masked) mapped=5 N0=5\n7fff default stack N0=1\n";
        assert_eq!(without_files(maps), nameless);
    }

    #[test]
    fn secrets_are_hidden_in_names_too() {
        let mut moment = Moment::default();
        let text = Raw::Text("0::/token=hunter2\n".to_owned());
        moment.files.insert("/x/token=hunter2".to_owned(), text);
        let listener = rungwise_model::kernel::UnixListener {
            name: "/run/token=hunter2".to_owned(),
            ..rungwise_model::kernel::UnixListener::default()
        };
        let answer = Reply::Answer(Answer::Unix(vec![listener]));
        moment.answers.insert("unix".to_owned(), answer);
        let mut capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        "token=hunter2".clone_into(&mut capture.machine.hostname);
        secrets(&mut capture);
        let all = serde_json::to_string(&capture).unwrap();
        assert!(!all.contains("hunter2"), "{all}");
        assert_eq!(all.matches(MASKED).count(), 4);
    }

    #[test]
    fn numbers_and_times_are_no_addresses() {
        let mut known = StandIns::default();
        for text in [
            "cpu0 10 20.5 ff 00000003",
            "12:30:15",
            "a: b",
            "0000:00:1f.2",
            "6.18.44",
        ] {
            assert_eq!(known.in_text(text), text);
        }
    }

    #[test]
    fn sockets_and_host_name_are_masked_in_a_capture() {
        let mut moment = Moment::default();
        let socket = TcpSocket {
            local: "[2a00:1::5]:443".parse().unwrap(),
            remote: "203.0.113.77:50000".parse().unwrap(),
            ..TcpSocket::default()
        };
        let answer = Reply::Answer(Answer::Tcp(vec![socket]));
        moment.answers.insert("tcp".to_owned(), answer);
        let text = Raw::Text("Linux db-master-3 booted".to_owned());
        moment.files.insert("/proc/version".to_owned(), text);
        let mut capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        "db-master-3".clone_into(&mut capture.machine.hostname);
        addresses(&mut capture);
        let all = serde_json::to_string(&capture).unwrap();
        for secret in ["2a00", "203.0.113", "db-master-3"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}
