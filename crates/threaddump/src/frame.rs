//! Frames of a stack, and what those on top say that a thread does.

use std::sync::Arc;

/// Frames that are shown of a stack.
const SHOWN: usize = 5;

/// Packages of the JDK, whose frames on top of a stack say how a thread waits and not why.
const JDK: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// What a lock protects or a thread does, by words in a frame; the first that fits, innermost frame first.
const MEANINGS: &[(&str, &str)] = &[
    ("org.apache.log4j.", "writes a log"),
    ("org.apache.logging.log4j.", "writes a log"),
    ("ch.qos.logback.", "writes a log"),
    ("java.util.logging.", "writes a log"),
    ("com.zaxxer.hikari.", "gets a database connection"),
    ("com.alibaba.druid.pool.", "gets a database connection"),
    ("com.mchange.v2.c3p0.", "gets a database connection"),
    ("org.apache.commons.dbcp", "gets a database connection"),
    ("org.apache.tomcat.jdbc.pool.", "gets a database connection"),
    ("com.mysql.", "waits for the database"),
    ("org.postgresql.", "waits for the database"),
    ("oracle.jdbc.", "waits for the database"),
    ("com.microsoft.sqlserver.jdbc.", "waits for the database"),
    ("org.mariadb.jdbc.", "waits for the database"),
    (
        "org.apache.dubbo.remoting.exchange.",
        "waits for another service",
    ),
    (
        "com.alibaba.dubbo.remoting.exchange.",
        "waits for another service",
    ),
    (
        "org.apache.dubbo.rpc.AsyncRpcResult.get",
        "waits for another service",
    ),
    (
        "io.grpc.stub.ClientCalls.blocking",
        "waits for another service",
    ),
    ("org.apache.http.", "waits for another service"),
    ("org.apache.hc.", "waits for another service"),
    ("okhttp3.", "waits for another service"),
    ("redis.clients.jedis.", "waits for another service"),
    ("io.lettuce.core.", "waits for another service"),
    (
        "jdk.internal.net.http.HttpClientImpl.send",
        "waits for another service",
    ),
    ("java.lang.ClassLoader.loadClass", "loads classes"),
    ("java.lang.Thread.sleep", "sleeps"),
    ("java.net.SocketInputStream.", "reads from a socket"),
    ("sun.nio.ch.NioSocketImpl.read", "reads from a socket"),
    ("sun.nio.ch.NioSocketImpl.connect", "opens a connection"),
    (
        "java.net.PlainSocketImpl.socketConnect",
        "opens a connection",
    ),
    ("java.net.Inet4AddressImpl.lookup", "resolves a name"),
    ("java.net.Inet6AddressImpl.lookup", "resolves a name"),
    ("java.io.FileOutputStream.write", "writes a file"),
    ("sun.nio.ch.FileDispatcherImpl.write", "writes a file"),
    ("java.io.FileInputStream.read", "reads a file"),
];

/// Whether a thread with this meaning waits for what another process does.
pub(crate) fn is_downstream(meaning: &str) -> bool {
    matches!(
        meaning,
        "waits for the database" | "waits for another service"
    )
}

/// Whether the stack is in the midst of Java serialization, and not in a read on its behalf that waits for a socket.
pub(crate) fn serializes(frames: &[Arc<str>]) -> bool {
    const STREAMS: [&str; 2] = ["java.io.ObjectInputStream", "java.io.ObjectOutputStream"];
    const READS: [&str; 2] = [
        "java.net.SocketInputStream.",
        "sun.nio.ch.NioSocketImpl.read",
    ];
    let is_of = |frame: &Arc<str>, all: &[&str]| {
        let name = method(frame);
        all.iter().any(|start| name.starts_with(start))
    };
    let innermost = frames.iter().position(|frame| is_of(frame, &STREAMS));
    innermost.is_some_and(|at| !frames[..at].iter().any(|frame| is_of(frame, &READS)))
}

/// Whether the thread handles a request: a call that a server's framework makes for each request is on its stack. Idle threads of a pool
/// have no such call.
pub(crate) fn handles_request(frames: &[Arc<str>]) -> bool {
    const HANDLERS: [&str; 14] = [
        "com.alibaba.dubbo.remoting.exchange.support.header.HeaderExchangeHandler.handleRequest",
        "com.caucho.hessian.server.HessianSkeleton.invoke",
        "com.sun.net.httpserver.Filter$Chain.doFilter",
        "io.grpc.stub.ServerCalls$",
        "io.undertow.server.Connectors.executeRootHandler",
        "jakarta.servlet.http.HttpServlet.service",
        "javax.servlet.http.HttpServlet.service",
        "org.apache.catalina.core.StandardWrapperValve.invoke",
        "org.apache.dubbo.remoting.exchange.support.header.HeaderExchangeHandler.handleRequest",
        "org.apache.thrift.ProcessFunction.process",
        "org.eclipse.jetty.server.Server.handle",
        "org.glassfish.jersey.server.ServerRuntime.process",
        "org.springframework.web.method.support.InvocableHandlerMethod.",
        "sun.rmi.server.UnicastServerRef.dispatch",
    ];
    frames.iter().any(|frame| {
        let name = method(frame);
        HANDLERS.iter().any(|start| name.starts_with(start))
    })
}

/// Class and method, without the loader and the module before and the place behind: `java.lang.Object.wait`.
pub(crate) fn method(frame: &str) -> &str {
    let mut name = frame.split_once('(').map_or(frame, |(name, _)| name);
    // `app//Main.main`, `java.base@17/java.lang.Object.wait`; the address of a lambda has a stroke as well.
    while let Some((module, rest)) = name.split_once('/')
        && !module.contains('$')
    {
        name = rest;
    }
    name
}

/// Class and method by their last names: `RollingFileAppender.append`.
pub(crate) fn short(frame: &str) -> &str {
    let name = method(frame);
    let dots: Vec<usize> = name.match_indices('.').map(|(at, _)| at).collect();
    match dots[..] {
        [.., class, _] => &name[class + 1..],
        _ => name,
    }
}

pub(crate) fn is_of_jdk(frame: &str) -> bool {
    let name = method(frame);
    JDK.iter().any(|package| name.starts_with(package))
}

/// The frames up to the first that is not of the JDK, and that one and those of libraries behind it; `most` at most.
pub(crate) fn inner(frames: &[Arc<str>], most: usize) -> &[Arc<str>] {
    let first = frames
        .iter()
        .position(|frame| !is_of_jdk(frame))
        .unwrap_or(frames.len());
    // A promise of a library is a frame or two behind those of the JDK.
    &frames[..frames.len().min(first + 3).min(most)]
}

/// The frames on top; those of the JDK left out where there are others.
pub(crate) fn top(frames: &[Arc<str>]) -> &[Arc<str>] {
    let first = frames
        .iter()
        .position(|frame| !is_of_jdk(frame))
        .unwrap_or(0);
    &frames[first..frames.len().min(first + SHOWN)]
}

/// What these frames say that the thread does.
pub(crate) fn meaning(frames: &[Arc<str>]) -> Option<&'static str> {
    let first = frames
        .iter()
        .position(|frame| !is_of_jdk(frame))
        .unwrap_or(0);
    let of = |frame: &Arc<str>| {
        let name = method(frame);
        let entry = MEANINGS.iter().find(|(words, _)| name.starts_with(words));
        entry.map(|(_, meaning)| *meaning)
    };
    // What the library does says more than the call of the system beneath it.
    let outer = frames.iter().skip(first).take(3 * SHOWN).find_map(of);
    outer.or_else(|| frames.iter().take(first).find_map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_reported_without_modules_and_places() {
        for (frame, name, last) in [
            (
                "java.lang.Object.wait(java.base@17/Native Method)",
                "java.lang.Object.wait",
                "Object.wait",
            ),
            (
                "java.base/java.lang.Thread.run(Thread.java:1)",
                "java.lang.Thread.run",
                "Thread.run",
            ),
            (
                "VT$$Lambda/0x0000000090042228.run(Unknown Source)",
                "VT$$Lambda/0x0000000090042228.run",
                "VT$$Lambda/0x0000000090042228.run",
            ),
            ("Main.main(Main.java)", "Main.main", "Main.main"),
            ("app//Main.main(Main.java)", "Main.main", "Main.main"),
            (
                "app//A$$Lambda$26/0x00007f.run(Unknown Source)",
                "A$$Lambda$26/0x00007f.run",
                "A$$Lambda$26/0x00007f.run",
            ),
            ("", "", ""),
        ] {
            assert_eq!((method(frame), short(frame)), (name, last));
        }
    }

    #[test]
    fn a_stream_of_objects_that_waits_for_its_socket_is_not_busy() {
        let busy = [
            "java.io.ObjectStreamClass.lookup(java.base@17/ObjectStreamClass.java:1)",
            "java.io.ObjectOutputStream.writeObject0(java.base@17/ObjectOutputStream.java:1)",
            "shop.Sessions.save(Sessions.java:1)",
        ];
        let waits = [
            "sun.nio.ch.NioSocketImpl.read(java.base@17/NioSocketImpl.java:1)",
            "java.io.ObjectInputStream$PeekInputStream.read(java.base@17/ObjectInputStream.java:1)",
            "shop.Rpc.call(Rpc.java:1)",
        ];
        for (frames, is) in [(&busy[..], true), (&waits, false), (&busy[2..], false)] {
            let frames: Vec<Arc<str>> = frames.iter().map(|frame| Arc::from(*frame)).collect();
            assert_eq!(serializes(&frames), is, "{frames:?}");
        }
    }

    #[test]
    fn a_log_statement_that_sleeps_writes_a_log() {
        let frames: Vec<Arc<str>> = [
            "java.lang.Thread.sleep(Native Method)",
            "SlowAppender.append(S.java:1)",
            "org.apache.log4j.Category.callAppenders(Category.java:206)",
        ]
        .map(Arc::from)
        .to_vec();
        assert_eq!(meaning(&frames), Some("writes a log"));
        assert_eq!(meaning(&frames[..2]), Some("sleeps"));
        assert_eq!(top(&frames).len(), 2);
    }
}
