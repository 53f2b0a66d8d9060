//! Kinds of code that a stack is in, by the packages of its frames.
//!
//! A stack is in a kind of code where its innermost frames are of that kind or of the JDK beneath it. A servlet filter of a log
//! framework that calls the application makes no request a log statement.

/// Packages of the JDK; native code and the kernel have no package.
const JDK: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// Kinds of code and the beginnings of their methods.
pub(crate) const KINDS: &[(&str, &[&str])] = &[
    (
        "logging",
        &[
            "org.apache.log4j.",
            "org.apache.logging.",
            "ch.qos.logback.",
            "org.slf4j.",
            "org.jboss.logging.",
            "org.jboss.logmanager.",
            "java.util.logging.",
            "org.apache.commons.logging.",
        ],
    ),
    (
        "serialization",
        &[
            "java.io.ObjectInputStream",
            "java.io.ObjectOutputStream",
            "com.caucho.hessian.",
            "com.alibaba.com.caucho.hessian.",
            "com.alibaba.hessian.",
            "com.esotericsoftware.kryo.",
            "com.google.protobuf.",
        ],
    ),
    (
        "json",
        &[
            "com.fasterxml.jackson.",
            "com.google.gson.",
            "com.alibaba.fastjson.",
            "com.alibaba.fastjson2.",
            "org.json.",
        ],
    ),
    (
        "jdbc",
        &[
            "com.mysql.",
            "org.mariadb.jdbc.",
            "org.postgresql.",
            "oracle.jdbc.",
            "com.microsoft.sqlserver.jdbc.",
            "org.h2.jdbc.",
            "com.zaxxer.hikari.",
            "com.alibaba.druid.",
            "com.mchange.v2.c3p0.",
            "org.apache.commons.dbcp",
            "org.apache.tomcat.jdbc.pool.",
        ],
    ),
    (
        "tls",
        &[
            "sun.security.ssl.",
            "com.sun.crypto.provider.",
            "javax.crypto.",
            "org.bouncycastle.",
            "org.conscrypt.",
            "io.netty.internal.tcnative.",
        ],
    ),
    ("compression", &["java.util.zip."]),
    ("regex", &["java.util.regex."]),
    (
        "xml",
        &[
            "com.sun.org.apache.xerces.",
            "com.sun.org.apache.xalan.",
            "org.apache.xerces.",
            "com.ctc.wstx.",
            "javax.xml.",
        ],
    ),
];

/// What the name of a method says, as bits: the first that it is of the JDK, the others [`KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits(u16);

impl Traits {
    /// Of a method by its class and name, joined by a dot; native code has no class.
    pub(crate) fn classify(method: &str, class: &str) -> Self {
        let mut bits = u16::from(class.is_empty() || JDK.iter().any(|of| class.starts_with(of)));
        for (at, (_, starts)) in KINDS.iter().enumerate() {
            if starts.iter().any(|start| method.starts_with(start)) {
                bits |= 2 << at;
            }
        }
        Self(bits)
    }

    pub(crate) fn is_of_jdk(self) -> bool {
        self.0 & 1 == 1
    }

    fn is_of(self, kind: usize) -> bool {
        self.0 & 2 << kind != 0
    }
}

/// The kinds of code that this stack is in, each with the frame that enters it. Frames are innermost first.
pub(crate) fn entered(frames: &[Traits]) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..KINDS.len()).filter_map(|kind| {
        let first = frames
            .iter()
            .position(|frame| frame.is_of(kind) || !frame.is_of_jdk())?;
        let run = &frames[first..];
        let length = run.iter().take_while(|frame| frame.is_of(kind)).count();
        (length > 0).then(|| (kind, first + length - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(frames: &[(&str, &str)]) -> Vec<(&'static str, usize)> {
        let traits: Vec<Traits> = frames
            .iter()
            .map(|(class, name)| Traits::classify(&format!("{class}.{name}"), class))
            .collect();
        entered(&traits)
            .map(|(kind, at)| (KINDS[kind].0, at))
            .collect()
    }

    #[test]
    fn a_log_statement_is_logging_down_to_the_write() {
        let stack = [
            ("java.io.FileOutputStream", "writeBytes"),
            ("org.apache.log4j.WriterAppender", "append"),
            ("org.apache.log4j.Category", "info"),
            ("shop.Cart", "add"),
        ];
        assert_eq!(entries(&stack), [("logging", 2)]);
    }

    #[test]
    fn the_application_beneath_a_filter_of_a_log_framework_is_not_logging() {
        let stack = [
            ("java.util.HashMap", "get"),
            ("shop.Cart", "add"),
            (
                "ch.qos.logback.classic.helpers.MDCInsertingServletFilter",
                "doFilter",
            ),
            (
                "org.apache.catalina.core.ApplicationFilterChain",
                "doFilter",
            ),
        ];
        assert_eq!(entries(&stack), []);
    }

    #[test]
    fn code_of_the_jdk_is_known_by_its_package() {
        let stack = [
            ("java.util.zip.Deflater", "deflate"),
            ("java.util.zip.GZIPOutputStream", "write"),
            ("shop.Export", "run"),
        ];
        assert_eq!(entries(&stack), [("compression", 1)]);
    }
}
