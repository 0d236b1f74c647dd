//! Helpers for the tests of wire formats. Pure.

use serde_json::Value;

use super::message::Message;
use super::{Delivery, Form, Listener, ModelTable, Request, StepId};
use crate::model::wire::Wire;

/// The request that asks the built-in model `name` for a whole answer to `messages`.
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
    };
    let mut body = Vec::new();
    wire.write_request((spec, &request, Delivery::Whole.into()), &mut body)
        .unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A listener that ignores everything.
pub(super) struct Quiet;

impl Listener for Quiet {}
