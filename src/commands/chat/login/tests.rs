//! Tests of the stored accounts and of the messages about signing in and out.

use super::*;
use crate::run::accounts::USUAL;
use crate::sys::exit::Exit;

const HOME_FILE: &str = "auth.json";

fn none() -> Environment {
    Environment::of(&[])
}

fn set() -> Environment {
    Environment::of(&[("ANTHROPIC_API_KEY", "sk-set")])
}

/// Returns the names of the accounts in this home, the active one first.
fn names(home: &Path) -> Vec<String> {
    let accounts = Accounts::load(home).unwrap();
    let active = accounts.active().map(|account| account.name.clone());
    active
        .into_iter()
        .chain(accounts.names().map(str::to_owned))
        .collect()
}

#[test]
fn argument_is_a_key_or_an_account_name() {
    let key = |key, account| LoginArgument::Key {
        key,
        account,
        provider: None,
    };
    for (argument, expected) in [
        ("sk-ant-1", key("sk-ant-1", None)),
        (" sk-1  --account work ", key("sk-1", Some("work"))),
        ("--account work other-key", key("other-key", Some("work"))),
        ("work", LoginArgument::Account("work")),
        ("--account work", LoginArgument::Account("work")),
    ] {
        assert_eq!(LoginArgument::read(argument), Ok(expected), "{argument}");
    }
    for (argument, provider) in [
        ("AIza-1", None),
        ("--provider openai k-1", Some(Provider::OpenAi)),
    ] {
        let read = LoginArgument::read(argument).unwrap();
        assert!(matches!(read, LoginArgument::Key { provider: read, .. } if read == provider));
    }
    let unknown = LoginArgument::read("k-1 --provider bedrock");
    assert_eq!(unknown, Err(NoAccount::NoProvider));
    for argument in ["", "a b", "sk-1 sk-2", "sk-1 --account", "--account a b c"] {
        let read = LoginArgument::read(argument);
        assert_eq!(read, Err(NoAccount::NotAName), "{argument}");
    }
}

#[test]
fn a_key_is_stored_and_counts_from_then_on() {
    let taken = |_: &ApiKey| Ok(None);
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".agent");
    for (account, expected) in [
        (DEFAULT, &["default", "default"][..]),
        ("work", &["work", "default", "work"]),
        (DEFAULT, &["default", "default", "work"]),
    ] {
        let said = store(&home, &none(), (account, USUAL), " sk-sekret\n", &taken).unwrap();
        assert_eq!(said.markdown(), format!("Signed in as {account}"));
        assert_eq!(names(&home), expected);
    }
    let said = switch(&home, &set(), "work").unwrap();
    assert_eq!(
        said.markdown(),
        "Signed in as work\n\n`ANTHROPIC_API_KEY` is set, and goes before it in new sessions"
    );
    assert_eq!(names(&home), ["work", "default", "work"]);
}

#[test]
fn an_account_names_its_vendor_and_what_goes_before_it_elsewhere() {
    let taken = |_: &ApiKey| Ok(None);
    let dir = tempfile::tempdir().unwrap();
    let key = "AIza-sekret";
    let provider = provider_of(key).unwrap();
    let environment = Environment::of(&[("GOOGLE_API_KEY", "x"), ("ANTHROPIC_API_KEY", "y")]);
    let said = store(dir.path(), &environment, ("g", provider), key, &taken).unwrap();
    assert_eq!(
        said.markdown(),
        "Signed in as g, for the models of Google\n\n`GOOGLE_API_KEY` is set, and goes before it in new sessions"
    );
    let accounts = Accounts::load(dir.path()).unwrap();
    assert_eq!(accounts.active().unwrap().provider, Provider::Gemini);
}

#[test]
fn keys_that_are_stored_at_once_are_all_kept() {
    const AT_ONCE: usize = 16;
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".agent");
    let checked = std::sync::Barrier::new(AT_ONCE);
    let taken = |_: &ApiKey| {
        checked.wait();
        Ok(None)
    };
    std::thread::scope(|scope| {
        for at in 0..AT_ONCE {
            let (home, taken) = (&home, &taken);
            let account = format!("work{at}");
            scope.spawn(move || {
                store(home, &none(), (&account, USUAL), "sk-sekret", taken).unwrap()
            });
        }
    });
    assert_eq!(Accounts::load(&home).unwrap().names().count(), AT_ONCE);
    assert_eq!(home.read_dir().unwrap().count(), 1, "only `{HOME_FILE}`");
}

#[test]
fn a_key_that_is_refused_is_not_stored_and_one_that_cannot_be_checked_is() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |_: &ApiKey| {
        let reason = "invalid x-api-key".to_owned();
        Err(ChatError::KeyRefused(reason).into())
    };
    let refused = store(dir.path(), &none(), (DEFAULT, USUAL), "sk-sekret", &refuse).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the key was rejected: invalid x-api-key"
    );
    assert_eq!(refused.exit(), Exit::ModelFailed);
    assert!(!dir.path().join(HOME_FILE).exists());
    let unknown = |_: &ApiKey| Ok(Some("no connection".to_owned()));
    let said = store(dir.path(), &none(), (DEFAULT, USUAL), "sk-sekret", &unknown).unwrap();
    let outcome = said.outcome();
    assert_eq!(outcome.summary, "Signed in as default");
    assert_eq!(
        outcome.warnings,
        ["the key is stored, but could not be checked: no connection"]
    );
    assert_eq!(names(dir.path()), ["default", "default"]);
}

#[test]
fn nothing_is_asked_with_what_cannot_be_stored() {
    let asked = |_: &ApiKey| -> Result<Option<String>, Error> { panic!("the vendor was asked") };
    let dir = tempfile::tempdir().unwrap();
    for (account, key, exit, expected) in [
        (DEFAULT, "", Exit::Usage, "the key is empty"),
        (DEFAULT, "se kret", Exit::Usage, "the key has a blank,"),
        (
            DEFAULT,
            "sek\nret",
            Exit::Usage,
            "the key has more than one line",
        ),
        ("a b", "sekret", Exit::Usage, "an account's name is made of"),
    ] {
        let error = store(dir.path(), &none(), (account, USUAL), key, &asked).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.exit(), exit);
    }
    let path = dir.path().join(HOME_FILE);
    std::fs::write(&path, "{broken").unwrap();
    let error = store(dir.path(), &none(), (DEFAULT, USUAL), "sk-sekret", &asked).unwrap_err();
    assert_eq!(error.exit(), Exit::NotReady);
    assert!(
        error.to_string().contains("auth.json`, line 1, column 2"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(path).unwrap(), "{broken");
}

#[test]
fn signing_out_reports_the_key_used_from_then_on() {
    let taken = |_: &ApiKey| Ok(None);
    let dir = tempfile::tempdir().unwrap();
    let out = |environment: Environment| sign_out(dir.path(), &environment).unwrap().markdown();
    assert_eq!(out(none()), "Nobody is signed in");
    assert!(!dir.path().join(HOME_FILE).exists());
    for account in ["a", "b"] {
        store(dir.path(), &none(), (account, USUAL), "sk-1", &taken).unwrap();
    }
    assert_eq!(out(none()), "Signed out: the account `a` is active now");
    assert_eq!(
        out(set()),
        "Signed out\n\n`ANTHROPIC_API_KEY` is set, and its key still counts"
    );
    assert_eq!(names(dir.path()), Vec::<String>::new());
    let unknown = switch(dir.path(), &none(), "a").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no account of that name; there are none"
    );
    assert_eq!(unknown.exit(), Exit::Usage);
}

#[test]
fn debug_output_and_errors_show_no_key() {
    let key = ChatKey {
        found: Err(NoKey::SignedOut(USUAL)),
        others: vec![ApiKey::parse(b"sk-sekret").unwrap()],
    };
    assert_eq!(key.exposed().collect::<Vec<_>>(), ["sk-sekret"]);
    assert!(!format!("{key:?}").contains("sekret"));
    let error = key.required().unwrap_err();
    assert_eq!(error.exit(), Exit::NotReady);
    for way in [
        "there is no API key",
        "`ANTHROPIC_API_KEY`",
        "`code-commit chat login`",
    ] {
        assert!(error.to_string().contains(way), "{error}");
    }
}
