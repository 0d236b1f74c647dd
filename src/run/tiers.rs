//! The service tier to request for a call, and the tier that served it, which determines its price. Pure.

use super::active::Run;
use crate::model::{ModelError, ModelSpec, Tier};

impl Run<'_> {
    /// Returns the tier to request: that of the model's entry, until the server has rejected it.
    pub(crate) fn tier(&self, spec: &ModelSpec) -> Tier {
        if self.without_tier.contains(&spec.name) {
            Tier::Standard
        } else {
            spec.tier
        }
    }

    /// Returns whether the server has rejected the tier; if so, the standard tier is requested from now on.
    pub(crate) fn falls_back_to_standard(&mut self, spec: &ModelSpec, error: &ModelError) -> bool {
        let tier = self.tier(spec);
        if tier == Tier::Standard || !error.refuses_tier() {
            return false;
        }
        self.warn(format!(
            "{error}: `{}` is asked in the tier `standard` instead of `{}` for the rest of the run, at the full price",
            spec.name,
            tier.into_str()
        ));
        self.without_tier.insert(spec.name.clone());
        true
    }

    /// Records the tier that served a call, as stated in the reply; if unknown, the standard tier is assumed.
    pub(crate) fn note_tier(&mut self, spec: &ModelSpec, stated: Option<Tier>) -> Tier {
        let asked = self.tier(spec);
        // A request for the standard tier can only be served in it.
        let known = stated.or((asked == Tier::Standard).then_some(asked));
        if spec.tier != Tier::Standard || known == Some(Tier::Flex) {
            self.note(|step| step.tier = known);
        }
        if asked != Tier::Standard && known != Some(asked) {
            let (name, asked) = (&spec.name, asked.into_str());
            let served = match (known, spec.price) {
                (Some(_), _) => "served in `standard`, at the full price",
                (None, Some(_)) => {
                    "its reply does not say which tier has served it: the cost is that of `standard`"
                }
                (None, None) => "its reply does not say which tier has served it",
            };
            self.warn(format!(
                "`{name}` was asked in the tier `{asked}`, and {served}"
            ));
        }
        known.unwrap_or_default()
    }
}
