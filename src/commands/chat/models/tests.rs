//! Tests of the available models, and of the messages about unavailable ones.

use super::*;
use crate::model::Provider;

#[test]
fn the_menu_has_windows_prices_and_what_the_vendor_adds() {
    let mut table = ModelTable::built_in();
    let sonnet = "1M, $2/$10";
    let haiku = "1M, $0.10/$0.50, $0.50/$2.50 above 100k";
    let alone = menu(&table, None, "claude-sonnet-5-5");
    assert_eq!((alone.items.len(), alone.at), (6, 4));
    assert_eq!(
        alone.items[4],
        ("claude-sonnet-5-5".to_owned(), sonnet.to_owned())
    );
    assert_eq!(alone.items[5].1, haiku);

    let listed = |id: &str, name: &str| ListedModel {
        id: id.to_owned(),
        display_name: name.to_owned(),
        max_input_tokens: Some(500_000),
        max_tokens: None,
    };
    let list = [
        listed("claude-sonnet-5-5-20260901", "Claude Sonnet 5.5"),
        listed("claude-haiku-5-5", ""),
        listed("claude-next", "Next\u{1b}[2J\nline"),
    ];
    table.add_listed(Provider::Anthropic, &list);
    let menu = menu(&table, Some(&list), "claude-next");
    let told: Vec<&str> = menu.items.iter().map(|(_, told)| &**told).collect();
    assert_eq!(menu.at, 6);
    assert!(told[2].starts_with("1M, $") && told[2].ends_with(", not offered for this key"));
    assert_eq!(told[4], format!("{sonnet}, Claude Sonnet 5.5"));
    assert_eq!(told[5], haiku);
    assert_eq!(told[6], "500k, Next\u{fffd}[2J line");
}
