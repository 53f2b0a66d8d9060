//! A rule of audit that records the calls of a user, so that there is a trail to leave somebody else out of.
//!
//! It only matters on a machine where audit is on, and there it records nothing: nobody is that user.

use std::io;

use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketType, netlink};

// linux/audit.h: message types, and what struct audit_rule_data is made of.
const ADD_RULE: u16 = 1011;
const DEL_RULE: u16 = 1012;
const EXIT: u32 = 4;
const ALWAYS: u32 = 2;
const REAL_USER: u32 = 1;
const EQUAL: u32 = 0x4000_0000;

/// The rule, behind all others, for as long as this lives.
#[derive(Debug)]
pub struct RecordedUser(u32);

impl RecordedUser {
    /// Adds it. Refused in a container, without root, and where audit is locked or not there.
    pub fn plant() -> io::Result<Self> {
        let user = a_user_of_nobody();
        change(ADD_RULE, user)?;
        Ok(Self(user))
    }
}

impl Drop for RecordedUser {
    fn drop(&mut self) {
        let _ = change(DEL_RULE, self.0);
    }
}

/// The number of a user that nobody is, another one in each process.
pub fn a_user_of_nobody() -> u32 {
    0x7000_0000 | std::process::id()
}

fn change(kind: u16, user: u32) -> io::Result<()> {
    // List, action, number of fields; 64 words each of the mask of calls, fields, values and operators; length of strings.
    let mut rule = [0_u32; 3 + 4 * 64 + 1];
    rule[..3].copy_from_slice(&[EXIT, ALWAYS, 1]);
    rule[3..66].fill(u32::MAX);
    (rule[67], rule[131], rule[195]) = (REAL_USER, user, EQUAL);
    let length = 16 + 4 * rule.len() as u32;
    let mut message = length.to_ne_bytes().to_vec();
    // NLM_F_REQUEST and NLM_F_ACK.
    message.extend([kind, 0x5].into_iter().flat_map(u16::to_ne_bytes));
    let rest = [1, 0].into_iter().chain(rule);
    message.extend(rest.flat_map(u32::to_ne_bytes));
    let socket = net::socket(
        AddressFamily::NETLINK,
        SocketType::RAW,
        Some(netlink::AUDIT),
    )?;
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    net::sendto(&socket, &message, SendFlags::empty(), &kernel)?;
    let mut answer = [0_u8; 2048];
    net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}
