//! The stub of a rule: `crates/rules/src/<topic>/<id>.rs`, its casebook, its line in the topic and its place
//! in the registry. A topic that does not exist yet comes along.

use anyhow::Result;

use super::{Draft, Id, STUB, add_mod, enter_by_id};

const REGISTRY: &str = "crates/rules/src/lib.rs";

const TOPIC: &str = "//! {STUB}: what the rules about {TOPIC} have in common.
";

const RULE: &str = r#"//! `{ID}`: {STUB}, what it looks for, the idea, the source (kernel file and version).

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold};

const SHARE: Threshold = Threshold {
    name: "{STUB}",
    value: 0.05,
    origin: "{STUB}: a source, or `own guess` with its reason",
};

pub(crate) static RULE: Rule = Rule {
    id: "{ID}",
    topic: "{TOPIC}",
    summary: "{STUB}",
    needs: &[&keys::CPU_BUSY_MEAN],
    thresholds: &[SHARE],
    knobs: &[],
    measure: Some(Measure::more(&keys::CPU_BUSY_MEAN)),
    doc: Doc {
        looks_for: "{STUB}",
        hurts: "{STUB}",
        todo: "{STUB}",
        wrong: "{STUB}",
        sources: "{STUB}",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let share = evidence.host(&keys::CPU_BUSY_MEAN)?;
    if !share.always(|share| share > SHARE.value) {
        let clear = Finding::clear("{STUB}: what was seen instead")
            .below(share.value, SHARE.value)
            .cite(share.reading);
        return Ok(vec![clear]);
    }
    Ok(vec![
        Finding::act(&Subject::host(), "{STUB}: one sentence with the numbers")
            .cite(share.reading)
            .refuted_by("{STUB}"),
    ])
}
"#;

const CASEBOOK: &str = r#"# {ID}

## {STUB}: the problem as observed

{STUB}: where the figures come from.

```evidence
window = 10s
cpu.busy_mean host = 90% [89% 91% 90%]
```

```outcome
act host medium medium:
```

## A near miss: {STUB}, just above the line

```evidence
window = 10s
cpu.busy_mean host = 5.2%
```

```outcome
act host medium medium:
```

## A near miss: {STUB}, just below the line

```evidence
window = 10s
cpu.busy_mean host = 4.8%
```

```outcome
clear
```

## The known false alarm: {STUB}

{STUB}: what resembles the problem but is not, and how the rule recognises it.

```evidence
window = 10s
cpu.busy_mean host = 8% [20% 2% 2%]
```

```outcome
clear
```

## {STUB}: evidence missing

```evidence
window = 10s
cpu.busy_mean host = absent "not permitted"
```

```outcome
undecided cpu.busy_mean
```
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    let id = Id::split(id, '/', "tcp/accept-queue-overflow")?;
    let (topic, module) = (super::module(id.folder), id.module());
    let fill = |text: &str| {
        text.replace("{STUB}", STUB)
            .replace("{ID}", id.name)
            .replace("{TOPIC}", id.folder)
    };
    let home = "crates/rules";
    draft.create(format!("{home}/src/{topic}/{module}.rs"), fill(RULE))?;
    draft.create(format!("{home}/cases/{}.md", id.name), fill(CASEBOOK))?;
    let list = format!("{home}/src/{topic}/mod.rs");
    if draft.text(&list).is_none() {
        draft.edit(REGISTRY, "", |text| {
            // Its neighbours may be public; a topic is not.
            let line = format!("\nmod {topic};");
            Ok(add_mod(text, &topic)?.replace(&format!("\npub mod {topic};"), &line))
        })?;
    }
    draft.edit(&list, &fill(TOPIC), |text| {
        let line = format!("\npub(crate) mod {module};");
        let text = add_mod(text, &module)?.replace(&format!("\nmod {module};"), &line);
        Ok(text)
    })?;
    let entry = format!("&{topic}::{module}::RULE");
    enter_by_id(draft, REGISTRY, "RULES: &[&Rule] = &[", &entry, id.name)
}
