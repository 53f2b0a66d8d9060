//! The connections of the named service, sampled ten times a second: their queues come and go within milliseconds.
//!
//! The kernel leaves out all other sockets. What is kept is limited, so a service with thousands of connections is sampled less often, and
//! one with very many only where data is queued or most bytes have moved; both ends of the window list all of them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use rungwise_host::Host;
use rungwise_model::kernel::{Answer, Endpoint, Question, TcpSocket};
use rungwise_model::service::ServicePort;

use super::sample::spread;
use super::{FULL_SAMPLES, name};
use crate::capture::{Moment, Reply, Service, ServiceSample};

/// Samples per second: a queue that fills for a tenth of the time is in ten of a window of ten seconds.
const PER_S: f64 = 10.0;

/// Fewest samples per second before only some of the connections are sampled.
const FEWEST_PER_S: f64 = 2.0;

/// Most samples in a window, which is reached after half a minute.
const MOST_SAMPLES: u32 = 300;

/// Most sockets in all samples, at 2 us and 330 bytes each; in a capture some 50 bytes.
const MOST_SOCKETS: usize = 20_000;

/// Sockets of a host up to which the kernel searches all of them for those of the service: 0.2 us each, 4 % of a CPU for so many (Linux
/// 6.18). Of a host with more, single connections are asked for by their ends.
const CROWDED: usize = 20_000;

/// Connections that are sampled of very many, by each measure.
const FEW: usize = 50;

/// Other network namespaces that are searched for the far ends, at some 60 us each. The report says how many.
const MOST_NETWORKS: usize = 64;

/// Samples the service during a window.
pub(super) struct Sampler<'h> {
    host: &'h dyn Host,
    service: Service,
    /// The connections to sample, if not all of them.
    few: Option<Vec<TcpSocket>>,
    /// Where far ends are.
    networks: Vec<PathBuf>,
    /// Far ends are few enough to be sampled often.
    samples_far: bool,
    /// Samples from one full sample to the next.
    per_part: u32,
}

impl<'h> Sampler<'h> {
    /// Nothing is sampled without ports.
    pub(super) fn new(host: &'h dyn Host, ports: Vec<ServicePort>) -> Self {
        Self {
            host,
            service: Service {
                ports,
                samples: Vec::new(),
            },
            few: None,
            networks: Vec::new(),
            samples_far: true,
            per_part: 0,
        }
    }

    /// Plans the samples of a window that begins with this full sample, and takes the first.
    pub(super) fn begin(&mut self, first: &Moment, window: Duration) {
        if self.service.ports.is_empty() {
            return;
        }
        let all = match first.answers.get(name(Question::Tcp)) {
            Some(Reply::Answer(Answer::Tcp(sockets))) => &sockets[..],
            _ => &[],
        };
        let own = self.of_service(all);
        self.find_networks(&own);
        self.sample(first.at_s, true);
        let far = self.service.samples.last();
        let far = far.map_or(0, |sample| sample.elsewhere.len());
        let seconds = window.as_secs_f64();
        let affordable = |sockets: usize| (MOST_SOCKETS / sockets.max(1)) as f64;
        let wanted = (PER_S * seconds).min(f64::from(MOST_SAMPLES));
        let mut samples = wanted.min(affordable(own.len() + far));
        let is_large = samples < wanted.min(FEWEST_PER_S * seconds);
        if is_large || all.len() > CROWDED {
            self.samples_far = !is_large;
            let few = few(own);
            samples = wanted.min(affordable(few.len()));
            self.few = Some(few);
        }
        self.per_part = samples as u32 / (FULL_SAMPLES - 1);
    }

    /// When samples are taken, as shares of the time from one full sample to the next.
    pub(super) fn places(&self, part: u32) -> impl Iterator<Item = f64> + use<> {
        let count = self.per_part;
        (0..count).map(move |number| spread(part, number, count))
    }

    /// One sample; `whole`: at an end of the window, where the far ends of all connections are listed.
    pub(super) fn sample(&mut self, at_s: f64, whole: bool) {
        if self.service.ports.is_empty() {
            return;
        }
        let ports = &self.service.ports;
        // What fails fails in the full samples as well, which say why.
        let own = match &self.few {
            Some(few) => self.host.tcp_among(few).unwrap_or_default(),
            // Both ends of the window list them in the full samples.
            None if whole => Vec::new(),
            None => self.host.tcp_of(ports).unwrap_or_default(),
        };
        let networks = self.networks.iter().filter(|_| whole || self.samples_far);
        let elsewhere = networks.flat_map(|link| self.host.tcp_in(link, ports).unwrap_or_default());
        let sample = ServiceSample {
            at_s,
            sockets: own.into_iter().filter(is_connected).collect(),
            elsewhere: elsewhere.filter(is_connected).collect(),
        };
        self.service.samples.push(sample);
    }

    /// What was sampled; nothing without ports.
    pub(super) fn end(self) -> Option<Service> {
        (!self.service.ports.is_empty()).then_some(self.service)
    }

    fn of_service(&self, sockets: &[TcpSocket]) -> Vec<TcpSocket> {
        let ports = &self.service.ports;
        let of_it = |socket: &&TcpSocket| ports.iter().any(|port| port.has(socket));
        let own = sockets.iter().filter(of_it);
        own.filter(|socket| is_connected(socket)).cloned().collect()
    }

    /// The other network namespaces with far ends of these connections.
    fn find_networks(&mut self, own: &[TcpSocket]) {
        let far: HashSet<(Endpoint, Endpoint)> = own
            .iter()
            .filter(|socket| !socket.remote.address.is_loopback())
            .map(|socket| (socket.remote, socket.local))
            .collect();
        if far.is_empty() {
            return;
        }
        let networks = self.host.other_networks().unwrap_or_default();
        let has_far_ends = |link: &PathBuf| {
            let sockets = self.host.tcp_in(link, &self.service.ports);
            let mut sockets = sockets.unwrap_or_default().into_iter();
            sockets.any(|socket| far.contains(&(socket.local, socket.remote)))
        };
        let networks = networks.into_values().take(MOST_NETWORKS);
        self.networks = networks.filter(has_far_ends).collect();
    }
}

/// It has two ends and is no listener.
fn is_connected(socket: &TcpSocket) -> bool {
    socket.remote.port != 0 && !socket.is_in_time_wait()
}

/// Connections with most data in their queues, and those that moved most since they were opened.
fn few(mut own: Vec<TcpSocket>) -> Vec<TcpSocket> {
    let queued = |socket: &TcpSocket| u64::from(socket.rqueue) + u64::from(socket.wqueue);
    let moved = |socket: &TcpSocket| {
        let info = socket.info.as_ref();
        info.map_or(0, |info| {
            info.bytes_acked.unwrap_or(0) + info.bytes_received.unwrap_or(0)
        })
    };
    own.sort_by_key(|socket| std::cmp::Reverse(queued(socket)));
    let mut rest = own.split_off(own.len().min(FEW));
    rest.sort_by_key(|socket| std::cmp::Reverse(moved(socket)));
    own.extend(rest.into_iter().take(FEW));
    own
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    fn sockets(count: u16) -> Vec<TcpSocket> {
        let socket = |number: u16| TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), 80),
            remote: Endpoint::new([10, 0, 0, 2].into(), 1_024 + number),
            state: 1,
            inode: u64::from(number) + 1,
            rqueue: u32::from(number == 7),
            ..TcpSocket::default()
        };
        (0..count).map(socket).collect()
    }

    /// Samples from one full sample to the next of ten seconds, and the connections in each, beside so many other sockets.
    fn planned(count: u16, others: usize) -> (u32, usize) {
        let other = TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), 443),
            remote: Endpoint::new([10, 0, 0, 3].into(), 5_000),
            state: 1,
            ..TcpSocket::default()
        };
        let mut all = sockets(count);
        all.resize(usize::from(count) + others, other);
        let answer = Answer::Tcp(all);
        let host = Recorded::new("this host", 1).with_answer(Question::Tcp, answer.clone());
        let mut first = Moment::default();
        first
            .answers
            .insert("tcp".to_owned(), Reply::Answer(answer));
        let mut sampler = Sampler::new(&host, vec![":80".parse().unwrap()]);
        sampler.begin(&first, Duration::from_secs(10));
        sampler.sample(1.0, false);
        let per_part = sampler.per_part;
        let samples = sampler.end().unwrap().samples;
        (per_part, samples.last().unwrap().sockets.len())
    }

    #[test]
    fn a_service_is_sampled_less_often_the_more_connections_it_has() {
        assert_eq!(planned(20, 0), (33, 20));
        assert_eq!(planned(400, 1_000), (16, 400));
        // Of very many, those with data in a queue and those that moved most; so on a host with very many others.
        assert_eq!(planned(5_000, 0), (33, 2 * FEW));
        assert_eq!(planned(400, CROWDED), (33, 2 * FEW));
        assert_eq!(planned(20, CROWDED), (33, 20));
    }

    #[test]
    fn without_a_service_nothing_is_sampled() {
        let host = Recorded::new("this host", 1);
        let mut sampler = Sampler::new(&host, Vec::new());
        sampler.begin(&Moment::default(), Duration::from_secs(10));
        sampler.sample(1.0, false);
        assert_eq!(sampler.places(1).count(), 0);
        assert!(sampler.end().is_none());
    }
}
