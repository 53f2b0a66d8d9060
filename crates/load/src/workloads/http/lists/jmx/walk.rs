//! The way through a plan: from its elements to users and their steps.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::data::{self, Set, Sharing};
use super::request::{Around, Level, Request};
use super::text::{Names, Reading};
use super::tree::Element;
use super::{Plan, Skipped, Source, shortened, timer};
use crate::workloads::http::lists::{Entry, MOST};
use crate::workloads::http::script::{Dealing, Group, Pause, Row, Step};

/// What an element is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Request,
    /// Flow Control Action, which may be a pause.
    Action,
    /// Simple controllers: their content is as if they were not there.
    Simple,
    Transaction,
    Loop,
    Once,
    Group,
    Defaults,
    Headers,
    Cookies,
    Data,
    Timer,
    Assertion,
    /// Read before everything else.
    Variables,
    Listener,
    /// It does nothing unless another element refers to it, or stays outside the run.
    Idle,
    Unsupported,
}

fn sort(element: &Element) -> Sort {
    match &*element.class {
        "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => Sort::Request,
        "TestAction" => Sort::Action,
        "GenericController" | "RecordingController" => Sort::Simple,
        "TransactionController" => Sort::Transaction,
        "LoopController" => Sort::Loop,
        "OnceOnlyController" => Sort::Once,
        "ThreadGroup" => Sort::Group,
        "ConfigTestElement" if element.form == "HttpDefaultsGui" => Sort::Defaults,
        "HeaderManager" => Sort::Headers,
        "CookieManager" => Sort::Cookies,
        "CSVDataSet" => Sort::Data,
        "ConstantTimer"
        | "UniformRandomTimer"
        | "GaussianRandomTimer"
        | "PoissonRandomTimer"
        | "ConstantThroughputTimer" => Sort::Timer,
        "ResponseAssertion" => Sort::Assertion,
        "Arguments" => Sort::Variables,
        "ResultCollector" | "CorrectedResultCollector" | "Summariser" | "BackendListener" => {
            Sort::Listener
        }
        "TestFragmentController"
        | "WorkBench"
        | "ProxyControl"
        | "HttpMirrorControl"
        | "PropertyDisplay" => Sort::Idle,
        _ => Sort::Unsupported,
    }
}

/// Properties of elements that are not supported in which they name the variables that they set.
const SETS: [&str; 9] = [
    "refname",
    "referenceNames",
    "variableName",
    "variableNames",
    "resultVariable",
    "returnVal",
    "CounterConfig.name",
    "refName",
    "VAR",
];

/// Reads a plan whose elements these are.
pub(super) fn plan(source: &Source<'_>, elements: &[Element]) -> Result<Plan, String> {
    let mut names = Names::with(source.properties);
    variables(elements, &mut names);
    set_elsewhere(elements, &mut names);
    let mut walk = Walk {
        source,
        names: &names,
        plan: Plan::default(),
        levels: Vec::new(),
        steps: Vec::new(),
        loops: 0,
        within: 0,
        paces: HashMap::new(),
        own_rows: 0,
        group: 0,
        counters: BTreeMap::new(),
        sets: HashMap::new(),
        listeners: 0,
        transactions: 0,
        follows: 0,
        timeouts: 0,
        dropped: BTreeMap::new(),
    };
    for plan in elements {
        match &*plan.class {
            "TestPlan" => walk.test_plan(plan)?,
            _ if sort(plan) == Sort::Idle => {}
            _ => walk.skip(plan, "not supported"),
        }
    }
    let mut plan = walk.end();
    plan.asks_for = names.asked.into_inner().into_iter().collect();
    Ok(plan)
}

/// Takes the variables that the plan defines, in its order; those of the same name replace others.
fn variables(elements: &[Element], names: &mut Names<'_>) {
    for element in elements {
        let items = match &*element.class {
            "TestPlan" => element.items("TestPlan.user_defined_variables", "Arguments.arguments"),
            "Arguments" => element.items("", "Arguments.arguments"),
            _ => &[],
        };
        let mut read = Vec::new();
        for item in items {
            let reading = Reading {
                names,
                columns: &[],
                element: element.id,
                calls: Cell::new(0),
            };
            let value = reading.fixed(item.text("Argument.value"));
            read.push((item.text("Argument.name").to_owned(), value));
        }
        names.variables.extend(read);
        variables(&element.below, names);
    }
}

/// Takes the names of variables that elements set during the run which are not supported.
fn set_elsewhere(elements: &[Element], names: &mut Names<'_>) {
    for element in elements {
        if !matches!(sort(element), Sort::Data | Sort::Variables) {
            let why = || Err(format!("{} sets it during the run", element.title()));
            for (key, value) in element.texts() {
                let key = key.rsplit('.').next().unwrap_or(key);
                let own = format!("{}.{key}", element.class);
                if SETS.contains(&key) || SETS.contains(&&*own) {
                    for name in value.split([';', ',']).map(str::trim) {
                        names.variables.insert(name.to_owned(), why());
                    }
                }
                // Scripts: vars.put("name", ...).
                for call in value.split("vars.put").skip(1) {
                    let mut parts = call.split(['"', '\'']);
                    if let (Some(before), Some(name)) = (parts.next(), parts.next())
                        && before.len() < 12
                    {
                        names.variables.insert(name.to_owned(), why());
                    }
                }
            }
            for name in element.items("", "UserParameters.names") {
                names.variables.insert(name.value().to_owned(), why());
            }
        }
        set_elsewhere(&element.below, names);
    }
}

/// What a part of a plan does in each pass of the loop around it.
#[derive(Clone, Copy, Debug, Default)]
struct Does {
    /// It sends a request in some pass.
    sends: bool,
    /// It sends one in each pass.
    always: bool,
}

struct Walk<'r, 'p> {
    source: &'r Source<'r>,
    names: &'r Names<'r>,
    plan: Plan,
    /// From the top of the plan to here.
    levels: Vec<Level<'p>>,
    /// Of the group.
    steps: Vec<Step>,
    /// Loops of the group so far.
    loops: usize,
    /// The loop around.
    within: usize,
    /// Numbers of the group's timers that keep a pace, by their element.
    paces: HashMap<usize, usize>,
    /// Data sets of the group of which each user has its own order.
    own_rows: usize,
    /// The group.
    group: usize,
    /// Counters of rows by who shares them: the key and, where it is of a group, that.
    counters: BTreeMap<(Sharing, usize), usize>,
    /// Data sets by their element; absent where they are skipped.
    sets: HashMap<usize, Option<Set>>,
    listeners: usize,
    transactions: usize,
    follows: usize,
    timeouts: usize,
    /// Header lines that are not sent, and of how many requests.
    dropped: BTreeMap<String, usize>,
}

impl<'p> Walk<'_, 'p> {
    fn skip(&mut self, element: &Element, why: &str) {
        let requests = requests_in(element);
        let inside = match requests {
            0 => String::new(),
            _ if sort(element) == Sort::Request => String::new(),
            _ => format!(" with {}", counted(requests, "request")),
        };
        self.plan.listed.skipped.push(Skipped {
            what: format!("{}{inside}", element.title()),
            why: why.to_owned(),
        });
    }

    fn reading<'a>(&'a self, columns: &'a [(String, String)], element: &Element) -> Reading<'a> {
        Reading {
            names: self.names,
            columns,
            element: element.id,
            calls: Cell::new(0),
        }
    }

    /// A property of an element that is the same for the whole run.
    fn fixed(&self, element: &Element, text: &str) -> Result<String, String> {
        let text = self.reading(&[], element).fixed(text)?;
        Ok(text.trim().to_owned())
    }

    fn test_plan(&mut self, plan: &'p Element) -> Result<(), String> {
        let (level, rest) = self.level(&plan.below);
        for element in rest.into_iter().filter(|one| sort(one) != Sort::Group) {
            self.skip(element, "outside of thread groups");
        }
        self.levels.push(level);
        let groups = |element: &&Element| sort(element) == Sort::Group;
        let is_serial = plan.is("TestPlan.serialize_threadgroups");
        if is_serial && plan.below.iter().filter(groups).count() > 1 {
            self.skip(
                plan,
                "thread groups one after the other; they run at the same time",
            );
        }
        for element in plan.below.iter().filter(groups) {
            self.group(element, &plan.below)?;
        }
        self.levels.pop();
        Ok(())
    }

    /// What lies at one level and applies to others, and what is to be walked through. Everything else is listed.
    fn level(&mut self, elements: &'p [Element]) -> (Level<'p>, Vec<&'p Element>) {
        let mut level = Level::default();
        let mut rest = Vec::new();
        for element in elements {
            match sort(element) {
                Sort::Defaults => level.defaults.push(element),
                Sort::Headers => level.headers.push(element),
                Sort::Cookies => {
                    if !element.items("", "CookieManager.cookies").is_empty() {
                        self.skip(element, "cookies that the plan itself contains");
                    }
                    level.cookies = Some(element);
                }
                Sort::Timer => level.timers.push(element),
                Sort::Assertion => level.assertions.push(element),
                Sort::Listener => self.listeners += 1,
                // Data sets are read with the loop that they belong to.
                Sort::Data | Sort::Variables | Sort::Idle => {}
                Sort::Group if !self.levels.is_empty() => self.skip(element, "not supported here"),
                Sort::Request
                | Sort::Action
                | Sort::Simple
                | Sort::Transaction
                | Sort::Loop
                | Sort::Once
                | Sort::Group => rest.push(element),
                Sort::Unsupported => self.skip(element, "not supported"),
            }
        }
        (level, rest)
    }

    /// Reads the data sets of a level and adds the steps that take their rows.
    fn rows(&mut self, elements: &'p [Element], level: &mut Level<'p>) {
        for element in elements.iter().filter(|one| sort(one) == Sort::Data) {
            let Some(set) = self.set(element) else {
                continue;
            };
            let dealt = match set.shared {
                None => {
                    self.own_rows += 1;
                    Dealing::Own(self.own_rows - 1)
                }
                Some(sharing) => {
                    let group = match &sharing {
                        Sharing::Key(_) => 0,
                        Sharing::OfGroup(_) => self.group,
                    };
                    let next = self.counters.len();
                    let number = self.counters.entry((sharing, group)).or_insert(next);
                    Dealing::Shared(*number)
                }
            };
            level.columns.extend(set.variables);
            self.steps.push(Step::Row(Row {
                table: set.table,
                dealt,
                ends: set.ends,
            }));
        }
    }

    fn set(&mut self, element: &'p Element) -> Option<Set> {
        if let Some(known) = self.sets.get(&element.id) {
            return known.clone();
        }
        let table = self.plan.data.len();
        let read = data::set(element, &self.reading(&[], element), self.source, table);
        let set = match read {
            Ok((set, data)) => {
                self.plan.data.push(data);
                Some(set)
            }
            Err(why) => {
                self.skip(element, &why);
                None
            }
        };
        self.sets.insert(element.id, set.clone());
        set
    }

    fn group(&mut self, element: &'p Element, beside: &'p [Element]) -> Result<(), String> {
        let number = |key: &str| {
            let text = self.fixed(element, element.text(key))?;
            Ok::<f64, String>(timer::number(&text))
        };
        let passes = element.text_within("ThreadGroup.main_controller", "LoopController.loops");
        let read = || {
            let loops = self.fixed(element, passes)?;
            let users = number("ThreadGroup.num_threads")?;
            let is_timed = element.is("ThreadGroup.scheduler");
            let timed = |key| if is_timed { number(key) } else { Ok(0.0) };
            let length = timed("ThreadGroup.duration")?;
            let seconds = |s: f64| Duration::from_nanos(timer::ns(s, 1e9));
            let group = Group {
                name: element.name.clone(),
                users: users.clamp(0.0, 1e9) as usize,
                delay: seconds(timed("ThreadGroup.delay")?),
                ramp: seconds(number("ThreadGroup.ramp_time")?),
                length: (length > 0.0).then(|| seconds(length)),
                steps: Vec::new(),
            };
            Ok::<_, String>((group, loops))
        };
        let (mut group, loops) = match read() {
            Ok(read) => read,
            Err(why) => {
                self.skip(element, &why);
                return Ok(());
            }
        };
        let on_error = element.text("ThreadGroup.on_sample_error");
        if !["", "continue"].contains(&on_error) {
            let why = format!(
                "'{}' after a failed request; its users go on",
                shortened(on_error)
            );
            self.skip(element, &why);
        }
        if element.text("ThreadGroup.same_user_on_next_iteration") == "false" {
            self.skip(element, "a new user for each pass; the same one goes on");
        }
        (self.loops, self.within, self.own_rows) = (1, 0, 0);
        self.paces.clear();
        self.steps.clear();
        let mut outer = self.levels.pop().unwrap_or_default();
        outer.columns.clear();
        self.rows(beside, &mut outer);
        let (mut level, rest) = self.level(&element.below);
        self.rows(&element.below, &mut level);
        let cookies = level.cookies.or(outer.cookies);
        if cookies.is_some_and(|manager| manager.is("CookieManager.clearEachIteration")) {
            self.steps.push(Step::Forget);
        }
        self.levels.extend([outer, level]);
        let does = self.steps_of(&rest)?;
        self.levels.pop();
        let times = times(&loops);
        if times == Some(0) || group.users == 0 {
            self.skip(element, "it has no users or no passes");
        } else if does.sends {
            self.close_loop(0, 0, times, does);
            group.steps = std::mem::take(&mut self.steps);
            self.plan.groups.push(group);
            self.group += 1;
        } else if requests_in(element) > 0 {
            self.skip(element, "none of its requests can be sent");
        } else {
            self.skip(element, "it contains no HTTP request");
        }
        Ok(())
    }

    /// Ends a loop that began at `to`.
    fn close_loop(&mut self, to: usize, number: usize, times: Option<u64>, does: Does) {
        // Where later passes send nothing, they change nothing, and without end they would never come to an end.
        let times = if does.always { times } else { Some(1) };
        if times != Some(1) {
            self.steps.push(Step::Again { to, times, number });
        }
    }

    fn steps_of(&mut self, elements: &[&'p Element]) -> Result<Does, String> {
        let mut all = Does::default();
        for element in elements {
            let does = match sort(element) {
                Sort::Request => self.request(element)?,
                Sort::Action => {
                    self.action(element);
                    Does::default()
                }
                Sort::Transaction => {
                    self.transactions += 1;
                    self.inner(element)?
                }
                Sort::Simple => self.inner(element)?,
                Sort::Once => {
                    let at = self.steps.len();
                    self.steps.push(Step::Send(0));
                    let does = self.inner(element)?;
                    self.steps[at] = Step::Once {
                        to: self.steps.len(),
                        number: self.within,
                    };
                    Does {
                        always: false,
                        ..does
                    }
                }
                Sort::Loop => self.repeat(element)?,
                _ => Does::default(),
            };
            all.sends |= does.sends;
            all.always |= does.always;
        }
        Ok(all)
    }

    /// What lies below a controller.
    fn inner(&mut self, element: &'p Element) -> Result<Does, String> {
        let begin = self.steps.len();
        let (mut level, rest) = self.level(&element.below);
        self.rows(&element.below, &mut level);
        self.levels.push(level);
        let does = self.steps_of(&rest);
        self.levels.pop();
        if !matches!(does, Ok(Does { sends: true, .. })) {
            self.only_pauses(begin);
        }
        does
    }

    /// Rows for requests that are not sent are not taken.
    fn only_pauses(&mut self, begin: usize) {
        let is_pause = |step: &Step| matches!(step, Step::Wait(_));
        let kept: Vec<Step> = self.steps.drain(begin..).filter(is_pause).collect();
        self.steps.extend(kept);
    }

    fn repeat(&mut self, element: &'p Element) -> Result<Does, String> {
        let times = match self.fixed(element, element.text("LoopController.loops")) {
            Ok(loops) => times(&loops),
            Err(why) => {
                self.skip(element, &why);
                return Ok(Does::default());
            }
        };
        let (begin, number) = (self.steps.len(), self.loops);
        self.loops += 1;
        let outer = std::mem::replace(&mut self.within, number);
        let does = self.inner(element);
        self.within = outer;
        let does = does?;
        if times == Some(0) || !does.sends {
            if self.steps.len() > begin && times != Some(0) {
                self.skip(element, "a loop without a request");
            }
            self.steps.truncate(begin);
            return Ok(Does::default());
        }
        self.close_loop(begin, number, times, does);
        // In each pass of the loop around, this one begins anew.
        Ok(Does {
            always: true,
            ..does
        })
    }

    fn request(&mut self, element: &'p Element) -> Result<Does, String> {
        if self.plan.listed.entries.len() == MOST {
            return Err(format!(
                "{} has more than {MOST} requests",
                self.source.file
            ));
        }
        let (level, rest) = self.level(&element.below);
        for inner in rest {
            self.skip(inner, "not supported below a request");
        }
        let sets = element.below.iter().filter(|one| sort(one) == Sort::Data);
        for set in sets {
            self.skip(set, "not supported below a request");
        }
        self.levels.push(level);
        let around = Around {
            source: self.source,
            names: self.names,
            levels: &self.levels,
            origin: self.plan.origin.as_deref(),
        };
        let read = around.request(element);
        let does = match read {
            Ok(request) => {
                self.wait();
                self.add(element, request);
                Does {
                    sends: true,
                    always: true,
                }
            }
            Err(why) => {
                self.skip(element, &why);
                Does::default()
            }
        };
        self.levels.pop();
        Ok(does)
    }

    fn add(&mut self, element: &Element, request: Request) {
        let Request {
            entry,
            origin,
            cookies,
            follows,
            dropped,
            unchecked,
        } = request;
        for (what, why) in unchecked {
            let why = format!("not checked, because {why}");
            self.plan.listed.skipped.push(Skipped { what, why });
        }
        if element.is("HTTPSampler.image_parser") {
            self.skip(element, "the resources of its page; it is sent itself");
        }
        for name in dropped {
            *self.dropped.entry(name).or_default() += 1;
        }
        self.follows += usize::from(follows);
        let timeouts = ["connect_timeout", "response_timeout"];
        let has_timeout = |key: &&str| !element.text(&format!("HTTPSampler.{key}")).is_empty();
        self.timeouts += usize::from(timeouts.iter().any(has_timeout));
        self.plan.cookies |= cookies;
        self.plan.origin.get_or_insert(origin);
        let entries: &mut Vec<Entry> = &mut self.plan.listed.entries;
        self.steps.push(Step::Send(entries.len()));
        entries.push(entry);
    }

    /// Waits for all timers that apply here.
    fn wait(&mut self) {
        let mut pauses = Vec::new();
        let mut refused = Vec::new();
        for level in &self.levels {
            let columns: Vec<(String, String)> = Vec::new();
            for element in level.timers.iter().copied() {
                let next = self.paces.len();
                let mut count = || *self.paces.entry(element.id).or_insert(next);
                let reading = Reading {
                    names: self.names,
                    columns: &columns,
                    element: element.id,
                    calls: Cell::new(0),
                };
                match timer::parse(element, &reading, &mut count) {
                    Ok(Pause::Fixed(0)) => {}
                    Ok(pause) => pauses.push(pause),
                    Err(why) => refused.push((element, why)),
                }
            }
        }
        for (element, why) in refused {
            let title = element.title();
            let known = |one: &Skipped| one.what == title && one.why == why;
            if !self.plan.listed.skipped.iter().any(known) {
                self.skip(element, &why);
            }
        }
        if !pauses.is_empty() {
            self.steps.push(Step::Wait(pauses));
        }
    }

    /// Flow Control Action: 1 is a pause (`TestAction`).
    fn action(&mut self, element: &'p Element) {
        let pause = match element.text("ActionProcessor.action").trim() {
            "1" => {
                let reading = self.reading(&[], element);
                timer::pause(element.text("ActionProcessor.duration"), &reading)
            }
            _ => Err("it stops or jumps".to_owned()),
        };
        let (level, rest) = self.level(&element.below);
        for inner in rest {
            self.skip(inner, "not supported below a pause");
        }
        match pause {
            Ok(pause) => {
                self.levels.push(level);
                self.wait();
                self.levels.pop();
                if pause != Pause::Fixed(0) {
                    self.steps.push(Step::Wait(vec![pause]));
                }
            }
            Err(why) => self.skip(element, &why),
        }
    }

    /// What was read, with what is to be said of it.
    fn end(self) -> Plan {
        let mut plan = self.plan;
        let mut note = |text: String| plan.notes.push(text);
        if self.follows > 0 {
            note(format!(
                "redirects are not followed: in {} a redirect is an error (status_3xx), where JMeter sends another request; \
                 --expect status=200-399 makes it an answer",
                counted(self.follows, "request")
            ));
        }
        for (name, number) in &self.dropped {
            let why = match &*name.to_ascii_lowercase() {
                "accept-encoding" => "texts of the body are looked for as they come",
                "cookie" => "the cookie manager sends its own",
                _ => "it follows from the body and the connection",
            };
            let requests = counted(*number, "request");
            note(format!(
                "header {} of {requests} not sent: {why}",
                shortened(name)
            ));
        }
        if self.timeouts > 0 {
            let requests = counted(self.timeouts, "request");
            note(format!("timeouts of {requests} not used: --timeout is"));
        }
        if self.transactions > 0 {
            let controllers = counted(self.transactions, "transaction controller");
            note(format!(
                "{controllers} without a result of their own; their requests have one"
            ));
        }
        if self.listeners > 0 {
            let listeners = counted(self.listeners, "listener");
            note(format!("{listeners} not run: results are in this report"));
        }
        plan
    }
}

/// `1 request`, `2 requests`.
fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// How often a loop passes; without end where absent.
fn times(text: &str) -> Option<u64> {
    match timer::number(text) {
        number if number < 0.0 => None,
        number => Some(number as u64),
    }
}

/// HTTP requests in an element, itself included.
fn requests_in(element: &Element) -> usize {
    let below: usize = element.below.iter().map(requests_in).sum();
    usize::from(sort(element) == Sort::Request) + below
}
