//! Requests: the call in a frame's body, and frames that are encoded once and sent often.
//!
//! Source: `DubboCodec.encodeRequestData` and `DecodeableRpcInvocation` of Dubbo. A body is a sequence of hessian2 values: Dubbo's
//! version, path, version of the service, method, descriptor of the parameter types, one value per parameter, attachments.

use crate::error::{Error, Problem};
use crate::frame::{HEADER_LEN, HESSIAN2, Header, Message};
use crate::hessian::{Limits, Reader, Value, Writer};
use crate::java::JavaType;

/// A call of a service's method.
///
/// ```
/// use rungwise_dubbo::hessian::Value;
/// use rungwise_dubbo::{Call, JavaType, Template, descriptor};
///
/// let types = [JavaType::parse("java.lang.String")?];
/// let mut call = Call::new("demo.HelloService", "sayHello");
/// call.descriptor = descriptor(&types);
/// call.arguments = vec![Value::string("world")];
/// call.attach("timeout", "1000");
/// let mut request = Template::new(&call, true)?;
/// let first = request.with_id(1).to_vec();
/// assert_eq!(first[..4], [0xda, 0xbb, 0xc2, 0]);
/// # Ok::<(), rungwise_dubbo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Version of the protocol. `2.0.2` lets the reply have attachments; Dubbo 2.5 sends `2.0.1`.
    pub dubbo_version: String,
    /// Path of the service, its interface name unless configured.
    pub path: String,
    /// Version of the service, `0.0.0` for none.
    pub service_version: String,
    /// Name of the method.
    pub method: String,
    /// Parameter types of the method as the JVM writes them, one behind the other: `Ljava/lang/String;I`. See [`crate::descriptor`].
    pub descriptor: String,
    /// One value per parameter.
    pub arguments: Vec<Value>,
    /// Names and values. Providers need none, except `group` where the service has one.
    pub attachments: Vec<(Value, Value)>,
}

impl Call {
    /// A call without parameters and attachments, of protocol version 2.0.2 and no service version.
    pub fn new(path: &str, method: &str) -> Self {
        Self {
            dubbo_version: "2.0.2".to_owned(),
            path: path.to_owned(),
            service_version: "0.0.0".to_owned(),
            method: method.to_owned(),
            descriptor: String::new(),
            arguments: Vec::new(),
            attachments: Vec::new(),
        }
    }

    /// Adds an attachment.
    pub fn attach(&mut self, name: &str, value: &str) -> &mut Self {
        self.attachments
            .push((Value::string(name), Value::string(value)));
        self
    }

    /// The text of an attachment.
    pub fn attachment(&self, name: &str) -> Option<&str> {
        attachment(&self.attachments, name)
    }

    /// The body of a request.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        for text in [
            &self.dubbo_version,
            &self.path,
            &self.service_version,
            &self.method,
            &self.descriptor,
        ] {
            writer.string(text);
        }
        for argument in &self.arguments {
            writer.value(argument);
        }
        writer.map(None);
        for (name, value) in &self.attachments {
            writer.value(name).value(value);
        }
        writer.map_end();
        writer.into_bytes()
    }

    /// The call in the body of a request. Attachments may be null.
    pub fn decode(body: &[u8], limits: Limits) -> Result<Self, Error> {
        let mut reader = Reader::new(body, limits);
        let dubbo_version = reader.string("the version of Dubbo")?;
        let path = reader.string("the path of the service")?;
        let service_version = reader.string("the version of the service")?;
        let method = reader.string("the name of the method")?;
        let at = reader.at();
        let descriptor = reader.string("the parameter types")?;
        let Some(types) = JavaType::parse_descriptor(&descriptor) else {
            let problem = Problem::Descriptor;
            return Err(Error::Body { at, problem });
        };
        let mut arguments = Vec::with_capacity(types.len().min(64));
        for _ in types {
            arguments.push(reader.value()?);
        }
        let attachments = reader.attachments()?;
        reader.end()?;
        Ok(Self {
            dubbo_version,
            path,
            service_version,
            method,
            descriptor,
            arguments,
            attachments,
        })
    }
}

/// The text of an attachment.
pub(crate) fn attachment<'v>(all: &'v [(Value, Value)], name: &str) -> Option<&'v str> {
    let (_, value) = all.iter().find(|(key, _)| key.as_str() == Some(name))?;
    value.as_str()
}

/// A request that is encoded once; from one to the next only the id changes.
#[derive(Clone, Debug)]
pub struct Template {
    frame: Vec<u8>,
}

impl Template {
    /// The frame of a call. A one-way call (`two_way` false) gets no reply.
    pub fn new(call: &Call, two_way: bool) -> Result<Self, Error> {
        Self::of_body(&call.encode(), two_way)
    }

    /// The frame of a body that is already encoded in hessian2.
    pub fn of_body(body: &[u8], two_way: bool) -> Result<Self, Error> {
        let mut frame = Vec::with_capacity(HEADER_LEN + body.len());
        let message = Message::Request { two_way };
        write_frame(&mut frame, message, 0, body)?;
        Ok(Self { frame })
    }

    /// The bytes of the request with this id.
    #[inline]
    pub fn with_id(&mut self, id: u64) -> &[u8] {
        self.frame[4..12].copy_from_slice(&id.to_be_bytes());
        &self.frame
    }

    /// Appends the request with this id, for several in one write.
    #[inline]
    pub fn append(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame[..4]);
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&self.frame[12..]);
    }

    /// Bytes of the frame.
    pub fn wire_len(&self) -> usize {
        self.frame.len()
    }
}

/// Appends a frame of hessian2 that is no event.
pub fn write_frame(out: &mut Vec<u8>, message: Message, id: u64, body: &[u8]) -> Result<(), Error> {
    // The peer reads the length as an int of Java.
    let body_len = i32::try_from(body.len()).map_err(|_| Error::Oversized(body.len()))?;
    let header = Header {
        message,
        is_event: false,
        serialization: HESSIAN2,
        id,
        body_len: body_len.cast_unsigned(),
    };
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(body);
    Ok(())
}
