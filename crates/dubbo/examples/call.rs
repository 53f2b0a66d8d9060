//! Calls a method of a running provider and prints the result:
//! `cargo run -p rungwise-dubbo --example call -- 10.1.1.2:20880 demo.HelloService sayHello 'java.lang.String' '["world"]'`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;
use std::net::TcpStream;

use rungwise_dubbo::{
    Call, DEFAULT_BODY_LIMIT, Decoder, JavaType, Limits, Message, Outcome, Reply, Template,
    arguments, descriptor, event, exception_text, heartbeat_reply,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, service, method, types, json] = &words[..] else {
        return Err("usage: call HOST:PORT SERVICE METHOD TYPES ARGUMENTS".into());
    };
    let types = JavaType::parse_list(types)?;
    let mut call = Call::new(service, method);
    call.descriptor = descriptor(&types);
    call.arguments = arguments(&types, &serde_json::from_str::<Vec<_>>(json)?)?;
    let mut request = Template::new(&call, true)?;

    let mut connection = TcpStream::connect(address)?;
    connection.write_all(request.with_id(1))?;
    let mut decoder = Decoder::new(DEFAULT_BODY_LIMIT);
    loop {
        while let Some(frame) = decoder.next_frame()? {
            if frame.header.is_event {
                println!("event: {:?}", event(&frame)?);
                if frame.header.message == (Message::Request { two_way: true }) {
                    let reply = heartbeat_reply(&frame.header);
                    connection.write_all(&reply)?;
                }
                continue;
            }
            match Reply::decode(&frame, Limits::default())?.outcome {
                Outcome::Value(value) => println!("{value:?}"),
                Outcome::Null => println!("null"),
                Outcome::Exception(exception) => println!("threw {}", exception_text(&exception)),
                Outcome::Failed { status, text } => println!("failed: {status}: {text}"),
            }
            return Ok(());
        }
        if decoder.read_from(&mut connection)? == 0 {
            return Err("the provider closed the connection without a reply".into());
        }
    }
}
