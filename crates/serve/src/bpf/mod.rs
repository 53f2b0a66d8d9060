//! The programs of the servers: answers, redirection and steering by XDP, and what they share.

pub(crate) mod xdp_echo;
pub(crate) mod xdp_redirect;

mod datagram;
