//! Helpers for the tests of wire formats, and the test of the list of providers. Pure.

use serde_json::Value;

use super::message::Message;
use super::{Delivery, Form, Listener, ModelTable, Provider, Request, StepId};
use crate::model::wire::Wire;

/// Writes the request that asks the built-in model `name` for a whole answer to `messages`.
pub(super) fn written(wire: &dyn Wire, name: &str, messages: &[Message<'static>]) -> Value {
    let table = ModelTable::built_in();
    let spec = table.named(name).unwrap();
    let request = Request {
        step: StepId::INITIAL,
        messages: messages.to_vec(),
        form: Form::default(),
        max_output_tokens: spec.max_output_tokens,
        tier: spec.tier,
        cached_by_marks: false,
        once: false,
        deadline: None,
    };
    let mut body = Vec::new();
    wire.write_request((spec, &request, Delivery::Whole.into()), &mut body)
        .unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A listener that ignores everything.
pub(super) struct Quiet;

impl Listener for Quiet {}

/// A provider that is missing in the list would be usable, but its keys would be neither redacted nor hidden.
#[test]
fn every_provider_is_listed_by_the_name_that_files_have_for_it() {
    let unknown = serde_json::from_value::<Provider>("?".into()).unwrap_err();
    let message = unknown.to_string();
    let mut names: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    let mut words = Provider::ALL.map(|provider| provider.vendor().word);
    names.sort_unstable();
    words.sort_unstable();
    assert_eq!(names, words);
}
