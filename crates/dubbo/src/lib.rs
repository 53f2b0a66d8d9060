//! Dubbo2, the binary protocol of Apache Dubbo 2.x and 3.x over TCP, and hessian2, its usual serialization.
//!
//! - Frames: [`Decoder`] cuts a connection's bytes into [`Frame`]s in place; [`Frame::parse`] does so for bytes that you hold.
//! - Requests: a [`Call`] is encoded once into a [`Template`], of which only the id changes. [`arguments`] converts JSON by a method's
//!   parameter types, [`descriptor`] names those as the JVM does.
//! - Replies: [`judge`] checks one without building its values, [`Reply::decode`] reads it, [`exception_text`] quotes an exception.
//! - Events: [`event`], [`heartbeat`], [`heartbeat_reply`].
//! - [`hessian`]: values, a reader with limits, a skipping reader, a writer.
//!
//! ```
//! use rungwise_dubbo::hessian::{Limits, Skipper, Value};
//! use rungwise_dubbo::{Answer, Call, Decoder, Message, Outcome, Reply, Template, judge, write_frame};
//!
//! // A consumer's request,
//! let mut call = Call::new("demo.HelloService", "sayHello");
//! call.descriptor = "Ljava/lang/String;".to_owned();
//! call.arguments = vec![Value::string("world")];
//! let mut request = Template::new(&call, true)?;
//! let sent = request.with_id(1);
//! assert_eq!(sent.len(), 16 + 66);
//!
//! // and what a provider answers, here as bytes in memory.
//! let reply = Reply { outcome: Outcome::Value(Value::string("hello world")), attachments: Vec::new() };
//! let (status, body) = reply.encode();
//! let mut wire = Vec::new();
//! write_frame(&mut wire, Message::Reply { status }, 1, &body)?;
//!
//! let mut decoder = Decoder::new(8 << 20);
//! let mut skipper = Skipper::new(Limits::default());
//! decoder.read_from(&mut wire.as_slice()).expect("memory is always read");
//! let frame = decoder.next_frame()?.expect("it is whole");
//! assert_eq!(frame.header.id, 1);
//! assert_eq!(judge(&frame, &mut skipper)?, Answer::Value);
//! # Ok::<(), rungwise_dubbo::Error>(())
//! ```
//!
//! In the loop that sends and receives nothing is allocated: [`Template::with_id`], [`Decoder::next_frame`] and [`judge`] work on memory
//! that they keep. No input makes a reader panic, allocate by a length that it claims, or take more than linear time.
//!
//! Not read: serializations other than hessian2 (their frames are), and Triple, the protocol of Dubbo 3 over HTTP/2.
//!
//! Sources: Dubbo's [protocol page](https://cn.dubbo.apache.org/en/docs3-v2/java-sdk/reference-manual/protocol/overview/), its codecs
//! `ExchangeCodec` and `DubboCodec`, the [hessian2 specification](http://hessian.caucho.com/doc/hessian-serialization.html), and frames
//! captured between stock consumers and providers of 2.5.10 and 3.3.6, which are test vectors.

mod arguments;
mod decoder;
mod error;
mod event;
mod frame;
pub mod hessian;
mod java;
mod reply;
mod request;

pub use arguments::arguments;
pub use decoder::Decoder;
pub use error::{Error, Problem};
pub use event::{Event, HEARTBEAT_LEN, event, heartbeat, heartbeat_reply};
pub use frame::{DEFAULT_BODY_LIMIT, Frame, HEADER_LEN, HESSIAN2, Header, MAGIC, Message, Status};
pub use hessian::Limits;
pub use java::{JavaType, Primitive, descriptor};
pub use reply::{Answer, Outcome, Reply, exception_text, judge};
pub use request::{Call, Template, write_frame};
