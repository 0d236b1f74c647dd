//! Checks of a reply: the model that sent it, its price, the use of tools, and its end. Pure.

use super::context::Context;
use crate::edit::{self, ParsedReply};
use crate::model::price::Price;
use crate::model::served::is_same;
use crate::model::{End, ModelError, ModelSpec, Reply, Request, catalogue};
use crate::sys::text::one_line;

/// Maximum length of a model's name shown, in characters.
const LONGEST_NAME: usize = 200;

/// A model that answered in place of another.
pub struct Served {
    /// The model's name, as reported by its vendor.
    pub name: String,
    /// The model's price, if known.
    pub price: Option<Price>,
}

impl Served {
    /// Returns the model that answered, by its version, if it is not the one requested.
    pub fn instead(context: &Context<'_>, spec: &ModelSpec, version: &str) -> Option<Self> {
        spec.vendors_name().filter(|name| !is_same(name, version))?;
        let price = match &context.models {
            _ if spec.has_own_price() => spec.price,
            Ok(table) => table.price_of(spec.provider, version, context.today()),
            Err(_) => None,
        };
        let name = one_line(version, LONGEST_NAME);
        Some(Self { name, price })
    }

    /// Returns the warning for the user.
    pub fn warning(&self, asked: &str) -> String {
        let price = match self.price {
            Some(price) => format!(
                "${} in and ${} out",
                price.rates.input.dollars(),
                price.rates.output.dollars()
            ),
            None => "not known, and neither is the cost".to_owned(),
        };
        format!(
            "`{asked}` was asked, but `{}` answered; the price for a million tokens is {price}",
            self.name
        )
    }
}

/// Returns the price to expect of a call before any reply: the successor's once its vendor has announced that it
/// answers.
pub fn expected_price(context: &Context<'_>, spec: &ModelSpec) -> Option<Price> {
    let name = spec.vendors_name().filter(|_| spec.base_url.is_none());
    let successor = name.and_then(|name| catalogue::answering(name, context.today()));
    match (successor, &context.models) {
        (Some(successor), Ok(table)) => table.price_of(spec.provider, successor, context.today()),
        _ => spec.price,
    }
}

/// Returns the reply, unless it comes from a model other than the required one.
///
/// # Errors
/// Fails if another model sent the reply.
pub fn of_model(reply: Reply, required: Option<&str>) -> Result<Reply, ModelError> {
    match (required, reply.spent.model_version.as_deref()) {
        (Some(asked), Some(served)) if !is_same(asked, served) => Err(ModelError::OtherModel {
            asked: asked.to_owned(),
            served: one_line(served, LONGEST_NAME),
            spent: reply.spent.clone().into(),
            finish: reply.finish,
        }),
        _ => Ok(reply),
    }
}

/// Returns the reply, unless it calls tools or pauses for them although none were offered.
///
/// # Errors
/// Fails if the reply calls tools, or pauses for them, without having been offered any.
pub fn without_calls_unless_offered(
    reply: Reply,
    request: &Request<'_>,
) -> Result<Reply, ModelError> {
    let is_whole = reply.calls.is_empty() && reply.end != End::Paused;
    if is_whole || !request.form.tools.is_empty() {
        return Ok(reply);
    }
    Err(ModelError::CutShort {
        end: reply.end,
        message: Some("it calls tools, and was given none".to_owned()),
        spent: reply.spent.clone().into(),
        finish: reply.finish,
    })
}

/// Returns the reply, unless it is a list of edits that says itself that it is incomplete.
///
/// # Errors
/// Fails if the reply lacks edits, or may lack some.
pub fn with_all_edits(reply: Reply, request: &Request<'_>) -> Result<Reply, ModelError> {
    let format = request.form.edits;
    let parsed = format.and_then(|format| edit::incomplete(&reply.text, format));
    // A request for files has an end of its own.
    let is_request = |parsed: &ParsedReply| {
        request.form.takes_requests && parsed.request().is_some() && parsed.faults.is_empty()
    };
    let parsed = parsed.filter(|parsed| !is_request(parsed));
    match parsed.and_then(|parsed| parsed.incomplete) {
        Some(why) => Err(ModelError::Incomplete {
            why,
            spent: reply.spent.clone().into(),
            finish: reply.finish,
        }),
        None => Ok(reply),
    }
}
