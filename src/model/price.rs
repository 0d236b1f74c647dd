//! Prices per token, and amounts in dollars. Pure data.
//!
//! Prices are the vendors' published list prices, in US dollars per million tokens.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize, Serializer};

use crate::model::usage::Usage;

/// Number of tokens that a price covers.
const MILLION: f64 = 1e6;

/// The largest amount accepted, in dollars.
const LARGEST: f64 = 1e9;

/// A non-negative, finite amount of US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Usd(f64);

impl Usd {
    /// Zero dollars.
    pub const ZERO: Self = Self(0.0);

    /// Returns the amount, as a plain number.
    pub fn dollars(self) -> f64 {
        self.0
    }

    /// Returns half of the amount.
    pub fn half(self) -> Self {
        Self(self.0 / 2.0)
    }

    /// Rounds the amount to a millionth of a dollar, about the price of a token, so that sums can be compared exactly.
    pub fn rounded(self) -> Self {
        Self((self.0 * MILLION).round() / MILLION)
    }

    /// Subtracts `spent`; the result is never below zero.
    pub fn less(self, spent: Self) -> Self {
        Self((self.0 - spent.0).max(0.0))
    }
}

impl TryFrom<f64> for Usd {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, &'static str> {
        if (0.0..=LARGEST).contains(&dollars) && dollars.is_sign_positive() {
            Ok(Self(dollars))
        } else {
            Err("an amount of dollars is a number from 0 to a billion")
        }
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl Serialize for Usd {
    /// Serializes the amount as a number, [rounded](Usd::rounded).
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(self.rounded().0)
    }
}

impl fmt::Display for Usd {
    /// Formats the amount in cents; small amounts are shown to two significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding first makes half a cent come out the same whether the amount was summed or read from a record.
        let dollars = self.rounded().0 + 1e-9;
        let digits = match self.0 {
            0.0 => 0,
            dollars if dollars >= 0.1 => 2,
            dollars if dollars >= 0.01 => 3,
            dollars if dollars >= 0.001 => 4,
            dollars if dollars >= 0.000_05 => 5,
            _ => return f.pad("<$0.0001"),
        };
        f.pad(&format!("${dollars:.digits$}"))
    }
}

/// The price of a model's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "PriceEntry")]
pub struct Price {
    /// The rates of an ordinary call.
    #[serde(flatten)]
    pub rates: Rates,
    /// The rates of a call with a long prompt, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// The rates that apply to all tokens of a call with a long prompt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LongPrompt {
    /// Prompts of more tokens than this count as long.
    pub above: u64,
    /// The rates of such a call.
    #[serde(flatten)]
    pub rates: Rates,
}

/// Rates in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    /// The rate for prompt tokens.
    pub input: Usd,
    /// The rate for prompt tokens read from the vendor's cache.
    pub cached_input: Usd,
    /// The rate for prompt tokens written to the vendor's cache.
    pub cache_write: Usd,
    /// The rate for answer tokens, thinking included.
    pub output: Usd,
}

/// A price, as written in an entry of `models.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceEntry {
    input: Usd,
    output: Usd,
    cached_input: Option<Usd>,
    cache_write: Option<Usd>,
    long_prompt: Option<LongPromptEntry>,
    /// The last day on which this price applies.
    until: Option<NaiveDate>,
    /// The price after that day; unknown if left out.
    then: Option<Box<PriceEntry>>,
}

impl PriceEntry {
    /// Returns the price as of `today`.
    pub fn on(self, today: NaiveDate) -> Option<Price> {
        match self.until {
            Some(last) if last < today => self.then?.on(today),
            _ => Some(self.into()),
        }
    }
}

impl From<PriceEntry> for Price {
    /// Converts to the first of the prices. Rates that are left out default to the input rate.
    fn from(entry: PriceEntry) -> Self {
        let rates = |input, cached_input: Option<Usd>, cache_write: Option<Usd>, output| Rates {
            input,
            cached_input: cached_input.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
            output,
        };
        Self {
            rates: rates(
                entry.input,
                entry.cached_input,
                entry.cache_write,
                entry.output,
            ),
            long_prompt: entry.long_prompt.map(|long| LongPrompt {
                above: long.above,
                rates: rates(long.input, long.cached_input, long.cache_write, long.output),
            }),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LongPromptEntry {
    above: u64,
    input: Usd,
    output: Usd,
    cached_input: Option<Usd>,
    cache_write: Option<Usd>,
}

impl Price {
    /// Applies `change` to all rates.
    fn map(self, change: impl Fn(Rates) -> Rates) -> Self {
        Self {
            rates: change(self.rates),
            long_prompt: self.long_prompt.map(|long| LongPrompt {
                rates: change(long.rates),
                ..long
            }),
        }
    }

    /// Returns half of the price.
    pub fn half(self) -> Self {
        self.map(|rates| Rates {
            input: rates.input.half(),
            cached_input: rates.cached_input.half(),
            cache_write: rates.cache_write.half(),
            output: rates.output.half(),
        })
    }

    /// Returns the highest price of a call: its whole prompt is written to the vendor's cache, if that costs more.
    pub fn at_most(self) -> Self {
        self.map(|rates| Rates {
            input: Usd(rates.input.0.max(rates.cache_write.0)),
            ..rates
        })
    }

    /// Returns the cost of a call with this usage.
    pub fn of(&self, usage: Usage) -> Usd {
        let rates = match self.long_prompt {
            Some(long) if usage.input_tokens > long.above => long.rates,
            _ => self.rates,
        };
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let uncached = usage.input_tokens - cached;
        let written = usage.cache_write_tokens.min(uncached);
        per_token(rates.input, uncached - written)
            + per_token(rates.cached_input, cached)
            + per_token(rates.cache_write, written)
            + per_token(rates.output, usage.answered())
    }

    /// Returns how many answer tokens `money` pays for after a prompt of `input_tokens`.
    pub fn affordable_output(&self, money: Usd, input_tokens: u64) -> u64 {
        let prompt = self.of(Usage::plain(input_tokens, 0));
        let each = self.of(Usage::plain(input_tokens, 1)).less(prompt).0;
        let left = money.0 - prompt.0;
        if left < 0.0 {
            return 0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float that is too large becomes the largest integer; this one is not negative"
        )]
        if each > 0.0 {
            (left / each) as u64
        } else {
            u64::MAX
        }
    }
}

fn per_token(price: Usd, tokens: u64) -> Usd {
    #[expect(
        clippy::cast_precision_loss,
        reason = "2^52 tokens are more than anybody pays for"
    )]
    let tokens = tokens as f64;
    Usd(price.0 * tokens / MILLION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tier;

    fn usd(dollars: f64) -> Usd {
        Usd::try_from(dollars).unwrap()
    }

    fn rates(dollars: [f64; 4]) -> Rates {
        let [input, cached_input, cache_write, output] = dollars.map(usd);
        Rates {
            input,
            cached_input,
            cache_write,
            output,
        }
    }

    fn gemini() -> Price {
        Price {
            rates: rates([1.25, 0.125, 1.25, 10.0]),
            long_prompt: Some(LongPrompt {
                above: 200_000,
                rates: rates([2.5, 0.25, 3.125, 15.0]),
            }),
        }
    }

    #[test]
    fn a_call_costs_what_the_vendor_bills() {
        let usage = |input_tokens, cached_tokens, thought_tokens, output_tokens| Usage {
            input_tokens,
            cached_tokens,
            thought_tokens,
            output_tokens,
            ..Usage::default()
        };
        for (usage, expected) in [
            (usage(0, 0, 0, 0), 0.0),
            (usage(100_000, 0, 0, 0), 0.125),
            (usage(100_000, 100_000, 0, 0), 0.0125),
            (usage(0, 0, 600, 400), 0.01),
            (usage(200_000, 0, 0, 1000), 0.26),
            (usage(200_001, 0, 0, 1000), 0.515_002_5),
            (usage(10, 20, 0, 0), 0.000_001_25),
        ] {
            let cost = gemini().of(usage).dollars();
            assert!((cost - expected).abs() < 1e-9, "{usage:?}: {cost}");
        }
    }

    #[test]
    fn cache_writes_are_billed_at_their_own_price() {
        let sol = Price {
            rates: rates([2.0, 0.1, 2.5, 10.0]),
            long_prompt: None,
        };
        let usage = |input_tokens, cached_tokens, cache_write_tokens| Usage {
            input_tokens,
            cached_tokens,
            cache_write_tokens,
            thought_tokens: 600,
            output_tokens: 400,
        };
        for (price, usage, micros) in [
            (sol, usage(100_000, 0, 0), 210_000),
            (sol, usage(100_000, 0, 90_000), 255_000),
            (sol, usage(110_000, 90_000, 5_000), 61_500),
            // Counts that do not add up are limited to the prompt's tokens.
            (sol, usage(1_000, 400, 900), 11_540),
            (sol, usage(1_000, 2_000, 900), 10_100),
            (gemini(), usage(300_000, 100_000, 50_000), 571_250),
            (Tier::Flex.price(sol), usage(110_000, 90_000, 5_000), 30_750),
            (
                Tier::Flex.price(gemini()),
                usage(300_000, 100_000, 50_000),
                285_625,
            ),
            (sol.at_most(), usage(100_000, 0, 0), 260_000),
            (gemini().at_most(), usage(300_000, 0, 0), 952_500),
        ] {
            let cost = price.of(usage).dollars() * MILLION;
            assert!((cost - f64::from(micros)).abs() < 1e-3, "{usage:?}: {cost}");
        }
    }

    #[test]
    fn a_run_of_four_calls_costs_less_in_the_cached_order_and_half_in_flex() {
        let call = |cached_tokens| Usage {
            input_tokens: 100_000,
            cached_tokens,
            output_tokens: 7_000,
            ..Usage::default()
        };
        let price = Price {
            long_prompt: None,
            ..gemini()
        };
        let run = |price: Price, cached| -> Usd {
            let calls = [0, cached, cached, cached].map(call);
            calls.into_iter().map(|usage| price.of(usage)).sum()
        };
        assert_eq!(run(price, 0).to_string(), "$0.78");
        assert_eq!(run(price, 100_000).to_string(), "$0.44");
        assert_eq!(run(Tier::Flex.price(price), 100_000).to_string(), "$0.22");
    }

    #[test]
    fn an_answer_that_is_affordable_does_not_pass_the_money() {
        for money in [0.0, 0.001, 0.125, 0.5, 100.0] {
            for input_tokens in [0, 1000, 100_000, 300_000] {
                let output_tokens = gemini().affordable_output(usd(money), input_tokens);
                let cost = gemini().of(Usage {
                    input_tokens,
                    output_tokens,
                    ..Usage::default()
                });
                assert!(output_tokens == 0 || cost.dollars() <= money + 1e-9);
            }
        }
        let free = Price {
            rates: rates([0.0; 4]),
            long_prompt: None,
        };
        assert_eq!(free.affordable_output(Usd::ZERO, 5), u64::MAX);
    }

    #[test]
    fn amounts_are_shown_to_the_digit_that_matters() {
        for (dollars, expected) in [
            (0.0, "$0"),
            (12.345, "$12.35"),
            (0.002_25, "$0.0023"),
            (0.002_250_000_1, "$0.0023"),
            (0.1, "$0.10"),
            (0.0712, "$0.071"),
            (0.005_12, "$0.0051"),
            (0.000_51, "$0.00051"),
            (0.000_001, "<$0.0001"),
        ] {
            assert_eq!(usd(dollars).to_string(), expected);
        }
        for nonsense in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Usd::try_from(nonsense).is_err());
        }
    }
}
