//! A browser that shows a page and is told what a person would do: fingers on the screen, a dark room. It is driven by the
//! protocol of its developer tools (<https://chromedevtools.github.io/devtools-protocol>), over a pair of pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::run::Bench;

/// Chromium without a screen, and without a word to anybody.
pub(crate) const ALONE: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
    session: Option<String>,
}

impl Browser {
    /// Starts it with an empty page of this size, pixels of CSS.
    pub(crate) fn start(bench: &Bench, [width, height]: [u32; 2]) -> Self {
        // It reads file descriptor 3 and writes 4.
        let shell = r#"exec chromium "$@" 3<&0 4>&1 0</dev/null 1>&2"#;
        let mut child = Command::new("sh")
            .args(["-c", shell, "chromium"])
            .args(ALONE)
            .arg("--remote-debugging-pipe")
            .arg(format!(
                "--user-data-dir={}",
                bench.path("profile").display()
            ))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut browser = Self {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
            session: None,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        browser.call("Page.enable", &json!({}));
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", &size);
        browser
    }

    /// Says that the person wants pages `dark` or `light`.
    pub(crate) fn prefers(&mut self, scheme: &str) {
        self.shows("screen", scheme);
    }

    /// Shows pages as on that medium, `screen` or `print`, to a person who wants them `dark` or `light`.
    pub(crate) fn shows(&mut self, medium: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let media = json!({ "media": medium, "features": features });
        self.call("Emulation.setEmulatedMedia", &media);
    }

    /// Has a screen that is touched, as pages see it.
    pub(crate) fn has_touch_screen(&mut self) {
        let touch = json!({ "enabled": true, "maxTouchPoints": 2 });
        self.call("Emulation.setTouchEmulationEnabled", &touch);
    }

    /// Opens a page and waits until it is whole.
    pub(crate) fn open(&mut self, page: &Path) {
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", &json!({ "url": url }));
        self.until("document.readyState === 'complete' && location.protocol === 'file:'");
    }

    /// What an expression of JavaScript gives on the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{answer:#}");
        answer["result"]["value"].clone()
    }

    /// Waits until it holds, frame by frame.
    pub(crate) fn until(&mut self, condition: &str) {
        const FRAMES: u32 = 600;
        for _ in 0..FRAMES {
            let frame = "new Promise(done => setTimeout(done, 16))";
            if self.value(condition) == true {
                return;
            }
            self.value(frame);
        }
        panic!("the page never came to {condition}");
    }

    /// A finger that comes down at the first of these places, moves over the others, and leaves.
    pub(crate) fn finger(&mut self, places: &[[f64; 2]]) {
        let mut what = "touchStart";
        for [x, y] in places {
            let points = json!({ "type": what, "touchPoints": [{ "x": x, "y": y }] });
            self.call("Input.dispatchTouchEvent", &points);
            what = "touchMove";
        }
        let none = json!({ "type": "touchEnd", "touchPoints": [] });
        self.call("Input.dispatchTouchEvent", &none);
    }

    /// Asks for something and waits for the answer; what it tells unasked is passed over.
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut text = Vec::new();
            self.from.read_until(0, &mut text).unwrap();
            assert!(
                text.pop() == Some(0),
                "chromium ended; install the package chromium"
            );
            let answer: Value = serde_json::from_slice(&text).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer:#}");
                return answer["result"].clone();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody is left who could ask.
        drop(self.to.take());
        let _ = self.child.wait();
    }
}
