//! Data of another network namespace than the one in question: removed from a capture, with the reason in its place, so
//! that no rule judges foreign files.

use crate::capture::{Capture, Raw, Reply};
use crate::probe::What;
use crate::{PROBES, gather};
use rungwise_model::kernel::Question;

/// What cannot be read of the network namespace in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// Its devices below `/sys`, which shows the namespace that mounted it.
    Sys,
    /// All of it: its sockets, counters, settings and devices.
    All,
}

impl Unseen {
    fn hides(self, path: &str) -> bool {
        // Counted per CPU for the whole machine, and shown in each namespace.
        let of_machine = path == "/proc/net/softnet_stat";
        let below = |tops: [&str; 2]| tops.into_iter().any(|top| path.starts_with(top));
        below(["/sys/class/net/", "/sys/bus/virtio/devices/"])
            || (self == Self::All && !of_machine && below(["/proc/net/", "/proc/sys/net/"]))
    }

    fn questions(self) -> &'static [Question] {
        match self {
            Self::Sys => &[],
            Self::All => &[
                Question::Tcp,
                Question::Udp,
                Question::Unix,
                Question::Devices,
                Question::Qdiscs,
                Question::Neighbours,
                Question::Namespaces,
                Question::Netfilter,
            ],
        }
    }
}

/// Removes from `capture` what is `unseen` and puts `why` in its place: a reason and a remedy, separated by `; `.
pub fn hide(capture: &mut Capture, unseen: Unseen, why: &str) {
    let failed = why.to_owned();
    if unseen == Unseen::All {
        capture.service = None;
    }
    for moment in capture.all_mut() {
        moment.files.retain(|path, _| !unseen.hides(path));
        for source in PROBES.iter().flat_map(|probe| probe.sources) {
            if let What::Files(pattern) = source.what
                && unseen.hides(pattern)
            {
                let failed = failed.clone();
                moment
                    .files
                    .insert(pattern.to_owned(), Raw::Failed { failed });
            }
        }
        for question in unseen.questions() {
            let reply = Reply::Failed(failed.clone());
            moment
                .answers
                .insert(gather::name(*question).to_owned(), reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Moment;
    use crate::capture::Capture;

    use super::*;

    fn capture() -> Capture {
        let mut moment = Moment::default();
        for path in [
            "/sys/class/net/eth0/mtu",
            "/sys/block/vda/queue/nr_requests",
            "/proc/net/snmp",
            "/proc/net/softnet_stat",
        ] {
            moment
                .files
                .insert(path.to_owned(), Raw::Text("1".to_owned()));
        }
        Capture {
            moments: vec![moment],
            ..Capture::default()
        }
    }

    #[test]
    fn what_is_of_another_namespace_is_a_reason_and_the_rest_stays() {
        for (unseen, kept, gone) in [
            (
                Unseen::Sys,
                &["/proc/net/snmp", "/proc/net/softnet_stat"][..],
                &["/sys/class/net/eth0/mtu"][..],
            ),
            (
                Unseen::All,
                &["/proc/net/softnet_stat", "/sys/block/vda/queue/nr_requests"],
                &["/sys/class/net/eth0/mtu"],
            ),
        ] {
            let mut capture = capture();
            hide(&mut capture, unseen, "it is elsewhere; go there");
            let files = &capture.moments[0].files;
            for path in kept {
                assert_eq!(files[*path], Raw::Text("1".to_owned()), "{path}");
            }
            for path in gone {
                assert!(!files.contains_key(*path), "{path}");
            }
            let text = crate::Window::of(&capture).text("/sys/class/net/*/mtu");
            let why = text.unwrap_err();
            // Without the file's name: what has one reason stands in one line of the report.
            assert_eq!(why.reason, "it is elsewhere");
            assert_eq!(why.remedy, "go there");
            let snmp = crate::Window::of(&capture).text("/proc/net/snmp");
            assert_eq!(snmp.is_err(), unseen == Unseen::All);
            let asked = crate::Window::of(&capture).answer("tcp").unwrap_err();
            assert_eq!(asked.remedy == "go there", unseen == Unseen::All);
        }
    }
}
