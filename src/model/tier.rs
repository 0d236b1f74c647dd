//! The vendors' service tiers that a user can choose. Pure.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::price::Price;

/// A vendor's tier of service: the speed, certainty and price of its answers.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    ValueEnum,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Tier {
    /// The vendor's ordinary service
    #[default]
    Standard,
    /// Half the price; answered later, when there is capacity
    Flex,
}

impl Tier {
    /// Parses the tier that a vendor says it used; `None` if that tier cannot be requested here.
    pub fn parse(word: &str) -> Option<Self> {
        match &*word.to_ascii_lowercase() {
            "flex" => Some(Self::Flex),
            "standard" | "default" | "unspecified" => Some(Self::Standard),
            _ => None,
        }
    }

    /// Returns the price in this tier, given the `price` in the standard one.
    pub fn price(self, price: Price) -> Price {
        match self {
            Self::Standard => price,
            Self::Flex => price.half(),
        }
    }
}
