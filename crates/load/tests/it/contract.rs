//! The JSON document: what a run yields fits the published type.

use rungwise_model::load::LoadReport;
use rungwise_model::{Envelope, Exit, SCHEMA_VERSION, Tool};

use crate::server::{Server, drive, workload};

#[test]
fn a_measurement_fits_the_schema_of_its_document() {
    let server = Server::start(|number, request, socket, from| {
        if number % 10 != 0 {
            crate::server::reply(socket, request, from);
        }
    });
    let completed = drive(&workload(server.address, 100)).unwrap();
    let report = LoadReport {
        envelope: Envelope {
            schema: SCHEMA_VERSION,
            document: None,
            run: None,
            written_on: None,
            tool: Tool {
                version: "0.0.0".to_owned(),
            },
            command: vec!["rungwise".to_owned()],
            started: "2026-01-01T00:00:00Z".to_owned(),
            finished: "2026-01-01T00:00:01Z".to_owned(),
            exit: Exit::Done,
        },
        target: server.address.to_string(),
        measurement: completed.measurement,
        slo: Vec::new(),
        limit: None,
    };
    let schema = serde_json::to_value(schemars::schema_for!(LoadReport)).unwrap();
    let document = serde_json::to_value(&report).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    for field in [
        "achieved_per_s",
        "sent",
        "received",
        "lost",
        "errors",
        "latency_us",
        "client",
        "seconds",
    ] {
        assert!(document.get(field).is_some(), "{field}");
    }
    assert_eq!(
        serde_json::from_value::<LoadReport>(document).unwrap(),
        report
    );
}
