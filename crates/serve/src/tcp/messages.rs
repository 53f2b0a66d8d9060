//! Short messages over connections that live long: pings, which go back, and messages to every connection.

use super::handler::{Handler, Reply, Step, Then};

/// Bytes of a message.
pub const MESSAGE: usize = 16;

/// The first byte of a message that goes to every connection, the one that it came from too. Every other goes back.
pub const BROADCAST: u8 = b'b';

/// Takes messages of [`MESSAGE`] bytes, which may have any content but for their first byte. Needs [`Config::broadcast`] for those that begin with
/// [`BROADCAST`].
///
/// [`Config::broadcast`]: super::Config::broadcast
#[derive(Clone, Copy, Debug)]
pub struct Messages;

impl Handler for Messages {
    type Session = ();

    fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
        let mut taken = 0;
        for message in input.chunks_exact(MESSAGE) {
            if !reply.has_room() {
                break;
            }
            if message[0] == BROADCAST {
                reply.broadcast(message);
            } else {
                reply.push(message);
            }
            reply.answered();
            taken += MESSAGE;
        }
        Step {
            taken,
            delay: None,
            then: Then::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_go_back_and_the_rest_waits() {
        let mut reply = Reply::default();
        let mut input = [b'p'; 40];
        input[16] = BROADCAST;
        let step = Messages.handle(&mut (), &input, &mut reply);
        assert_eq!((step.taken, step.then), (32, Then::Continue));
        assert_eq!(reply.bytes, [b'p'; 16]);
        assert_eq!((reply.answered, reply.all.len()), (2, 1));
        assert_eq!(reply.all[0][0], BROADCAST);
    }
}
