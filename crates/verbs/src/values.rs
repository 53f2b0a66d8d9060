//! Values of options that several verbs take.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rungwise_model::service::ServicePort;
use rungwise_model::units;

/// Longest window in which a host is observed: a day has every hour of its load in it.
const LONGEST_WINDOW: Duration = Duration::from_hours(24);

/// Length of a window in which a host is observed.
pub fn window(text: &str) -> Result<Duration, String> {
    let window = units::duration(text).map_err(|error| error.to_string())?;
    if window > LONGEST_WINDOW {
        return Err(format!(
            "'{text}' is longer than {}, the longest window; to cover more time, run `rungwise capture` repeatedly",
            units::written(LONGEST_WINDOW)
        ));
    }
    Ok(window)
}

/// The port of a service, with or without its address; a name stands for its first one.
pub fn service(text: &str) -> Result<ServicePort, String> {
    let wrong = match text.parse() {
        Ok(port) => return Ok(port),
        Err(wrong) => wrong,
    };
    let is_name = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(':') && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if !is_name {
        return Err(wrong);
    }
    let address = resolve("judge", text).map_err(|error| format!("{error:#}"))?;
    Ok(ServicePort::new(Some(address.ip()), address.port()))
}

/// An address to listen on; a name stands for its first one.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    resolve("listen on", text).map_err(|error| format!("{error:#}"))
}

/// The first address of `target`, for messages on what cannot be done: `load`, `listen on`.
pub fn resolve(what_for: &str, target: &str) -> anyhow::Result<SocketAddr> {
    let what = || {
        format!(
            "cannot {what_for} '{target}': it is not an address with a port; write 192.0.2.1:53, [2001:db8::1]:53, [fe80::1%eth0]:53 or name:53"
        )
    };
    // std reads a zone only as a number; the resolver of the system knows devices by name.
    let zoned = target
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .filter(|(address, _)| address.contains('%'));
    let addresses = match zoned {
        Some((address, port)) => {
            (address, port.parse::<u16>().with_context(what)?).to_socket_addrs()
        }
        None => target.to_socket_addrs(),
    };
    match addresses {
        Ok(mut addresses) => addresses.next().with_context(what),
        // The text has not the form of a target; anything else comes from the resolver.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error).with_context(what),
        Err(error) => bail!(
            "cannot resolve '{target}': {error}; correct the name, use an address, or check that name resolution works \
             here"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_day_at_most() {
        assert_eq!(window("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(window("24h").unwrap(), LONGEST_WINDOW);
        for bad in ["24.1h", "99h", "1500m"] {
            let error = window(bad).unwrap_err();
            assert!(error.contains("longer than 24h"), "{error}");
        }
        assert!(window("10").is_err());
    }

    #[test]
    fn a_service_is_a_port_with_or_without_an_address() {
        for (text, shown) in [
            (":20880", ":20880"),
            ("[::1]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(service(text).unwrap().to_string(), shown);
        }
        for wrong in ["", "abc", "10.0.0.1", ":0", ":70000", "a:b", "::1"] {
            let error = service(wrong).unwrap_err();
            assert!(error.contains("write :20880"), "{error}");
        }
    }

    #[test]
    fn a_target_may_name_its_zone_by_device() {
        let SocketAddr::V6(target) = resolve("load", "[fe80::1%lo]:53").unwrap() else {
            panic!("IPv6 was written");
        };
        // The loopback device is the first of every namespace.
        assert_eq!((target.port(), target.scope_id()), (53, 1));
        assert_eq!(
            resolve("load", "[fe80::1%1]:53").unwrap(),
            resolve("load", "[fe80::1%lo]:53").unwrap()
        );
        for bad in ["127.0.0.1", "[fe80::1%lo]:", "name:port"] {
            let error = format!("{:#}", resolve("load", bad).unwrap_err());
            assert!(error.contains("name:53"), "{bad}: {error}");
        }
        for unknown in ["[fe80::1%no-such]:53", "no-such-host.invalid:53"] {
            let error = format!("{:#}", resolve("load", unknown).unwrap_err());
            assert!(error.contains("cannot resolve"), "{error}");
        }
    }

    #[test]
    fn a_name_may_be_listened_on() {
        let address = listen("localhost:7000").unwrap();
        assert!(address.ip().is_loopback() && address.port() == 7000);
        let error = listen("localhost").unwrap_err();
        assert!(error.contains("cannot listen on 'localhost'"), "{error}");
    }
}
