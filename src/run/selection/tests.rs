//! Tests of the messages about names that no model has.

use super::*;
use crate::sys::exit::Exit;

#[test]
fn a_name_is_in_the_table_retired_or_unknown() {
    let table = ModelTable::built_in();
    let name = |name| named(&table, name).map(|spec| spec.name);
    assert_eq!(name("claude-opus-5-5").unwrap(), "claude-opus-5-5");
    for (old, successor) in [
        ("claude-3-opus", "claude-opus-5-5"),
        ("claude-3-opus-20240229", "claude-opus-5-5"),
        ("claude-3-sonnet", "claude-sonnet-5-5"),
        ("claude-3-5-haiku-latest", "claude-haiku-5-5"),
        ("claude-2.1", "claude-sonnet-5-5"),
    ] {
        let error = name(old).unwrap_err();
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
        let error = name(unknown).unwrap_err();
        let expected =
            format!("there is no model `{unknown}`; known: gemini-2.5-pro, gpt-5, claude-");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.hint().unwrap().contains("`code-commit models`"));
    }
}
