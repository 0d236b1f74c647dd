//! Formats numbers as English text does. Pure.

use std::time::Duration;

/// Formats a count of things: `1 file`, `1,230 files`.
pub fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

/// Formats a count with thousands separators: `41,230`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let thousands = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = thousands.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Formats a share as a percentage with one decimal. `0.0` means exactly nothing, and `100.0` exactly all.
pub fn percent(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    let part = u128::from(part);
    let tenths = match (part * 1000 + whole / 2) / whole {
        0 if part > 0 => 1,
        1000 if part < whole => 999,
        tenths => tenths,
    };
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Formats a duration in whole seconds: `42s`, `3m 05s`, `2h 00m 07s`.
pub fn elapsed(duration: Duration) -> String {
    let whole = duration.as_secs();
    let (minutes, seconds) = (whole / 60, whole % 60);
    match minutes {
        0 => format!("{seconds}s"),
        1..60 => format!("{minutes}m {seconds:02}s"),
        _ => format!("{}h {:02}m {seconds:02}s", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_short_as_it_can_be() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (725, "12m 05s"),
            (3600, "1h 00m 00s"),
            (90_061, "25h 01m 01s"),
        ] {
            assert_eq!(elapsed(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn things_are_counted_in_english() {
        assert_eq!(counted(1, "file"), "1 file");
        assert_eq!(counted(0, "file"), "0 files");
        assert_eq!(counted(2000, "file"), "2,000 files");
    }

    #[test]
    fn thousands_are_set_apart() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), expected);
        }
    }

    #[test]
    fn a_share_has_one_digit_behind_the_point() {
        assert_eq!(percent(1, 3), "33.3");
        assert_eq!(percent(2, 3), "66.7");
        assert_eq!(percent(902, 1_048_576), "0.1");
        assert_eq!(percent(0, 0), "0.0");
        assert_eq!(percent(1, 1_000_000), "0.1");
        assert_eq!(percent(999_999, 1_000_000), "99.9");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0");
    }
}
