//! Tests of the available models, and of the messages about unavailable ones.

use super::*;
use crate::model::Provider;
use crate::sys::exit::Exit;

#[test]
fn a_name_is_in_the_table_retired_or_unknown() {
    let table = ModelTable::built_in();
    let name = |name| selected(&table, name).map(|spec| spec.name);
    assert_eq!(name(None).unwrap(), "claude-sonnet-5-5");
    assert_eq!(name(Some("claude-opus-5-5")).unwrap(), "claude-opus-5-5");
    for (old, successor) in [
        ("claude-3-opus", "claude-opus-5-5"),
        ("claude-3-opus-20240229", "claude-opus-5-5"),
        ("claude-3-sonnet", "claude-sonnet-5-5"),
        ("claude-3-5-haiku-latest", "claude-haiku-5-5"),
        ("claude-2.1", "claude-sonnet-5-5"),
    ] {
        let error = name(Some(old)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the model `{old}` is retired: `{successor}` is its successor")
        );
        assert_eq!(error.exit(), Exit::Usage);
        assert!(
            error
                .hint()
                .unwrap()
                .contains(&format!("`--model {successor}`"))
        );
    }
    for unknown in ["gpt-6", "claude-9"] {
        let error = name(Some(unknown)).unwrap_err();
        let expected =
            format!("there is no model `{unknown}`; known: gemini-2.5-pro, gpt-5, claude-");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.hint().unwrap().contains("`/model`"));
    }
}

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
