//! Menus of models and sessions, on the full screen or in line mode.

use crate::model::{ModelSpec, ModelTable};
use crate::run::context::Context;
use crate::ui::input::{InputError, Typed, User};
use crate::ui::tui::Menu;

/// The maximum number of sessions offered for a choice.
const LISTED: usize = 50;
/// The description of an agent's own model.
const OWN: &str = "from the agent's own settings";

/// Returns the model that the user chooses from a menu, or a message if they choose none; `now` is the current one.
///
/// # Errors
/// Fails if the user interrupts the choice.
pub fn chosen_model(
    user: &User,
    menu: Menu,
    now: &str,
) -> Result<Result<String, String>, InputError> {
    let names: Vec<String> = menu.items.iter().map(|(name, _)| name.clone()).collect();
    let Some(chosen) = user.borrow_mut().choose(menu).transpose()? else {
        let names = names.join(", ");
        return Ok(Err(format!(
            "`{now}` is asked; `/model NAME` asks another: {names}"
        )));
    };
    let chosen = chosen.and_then(|at| names.into_iter().nth(at));
    Ok(chosen.ok_or_else(|| "the model stays the same".to_owned()))
}

/// Builds a menu of the models in the table, and of the agent's `own`. The one called `now` is selected.
pub fn table_menu(context: &Context<'_>, own: Option<String>, now: &str) -> Menu {
    let models = context.models.as_ref().map_or(&[][..], ModelTable::models);
    let named = |spec: &ModelSpec| spec.display_name.clone().unwrap_or_default();
    let mut menu = model_menu("Choose a model", models, named, now);
    if let Some(own) = own.filter(|own| menu.items.iter().all(|(name, _)| name != own)) {
        if own == now {
            menu.at = menu.items.len();
        }
        menu.items.push((own, OWN.to_owned()));
    }
    menu
}

/// Builds a menu of these models, each with its description. The one called `now` is selected.
pub fn model_menu(
    title: &str,
    models: &[ModelSpec],
    described: impl Fn(&ModelSpec) -> String,
    now: &str,
) -> Menu {
    let item = |spec: &ModelSpec| (spec.name.clone(), described(spec));
    Menu {
        title: title.to_owned(),
        items: models.iter().map(item).collect(),
        at: models.iter().position(|spec| spec.name == now).unwrap_or(0),
        is_unasked: false,
    }
}

/// Returns the id of the session with this number, or of the one that the user chooses from a menu; returns a message
/// if they choose none.
///
/// # Errors
/// Fails if the user interrupts the choice.
pub fn chosen_session(
    context: &Context<'_>,
    user: &User,
    sessions: &[(String, String)],
    number: &str,
) -> Result<Result<String, String>, InputError> {
    let sessions = &sessions[..sessions.len().min(LISTED)];
    let number = if number.is_empty() {
        let item = |(_, line): &(String, String)| (line.clone(), String::new());
        let menu = Menu {
            title: "Resume a session".to_owned(),
            items: sessions.iter().map(item).collect(),
            at: 0,
            is_unasked: false,
        };
        chosen_number(context, user, menu, "session> ")?
    } else {
        Some(number.to_owned())
    };
    let Some(number) = number else {
        return Ok(Err("the session stays the same".to_owned()));
    };
    let nth = number.parse::<usize>().ok();
    let chosen = nth.and_then(|nth| sessions.get(nth.checked_sub(1)?));
    Ok(chosen.map(|(id, _)| id.clone()).ok_or_else(|| {
        let last = sessions.len();
        format!("there is no session `{number}`: choose from 1 to {last}")
    }))
}

/// Lets the user choose from a menu, or type a number at this prompt. Returns the number, or `None` if they cancel.
pub fn chosen_number(
    context: &Context<'_>,
    user: &User,
    menu: Menu,
    prompt: &str,
) -> Result<Option<String>, InputError> {
    let mut user = user.borrow_mut();
    let mut listed = format!("{}:", menu.title);
    for ((name, note), nth) in menu.items.iter().zip(1..) {
        listed += format!("\n{nth:>3}  {name}  {note}").trim_end();
    }
    if let Some(chosen) = user.choose(menu).transpose()? {
        return Ok(chosen.map(|at| (at + 1).to_string()));
    }
    context.notice(listed);
    let typed = user.line(prompt)?;
    // Ctrl-C can arrive as a key or as a signal; clear the signal.
    let _ = context.interrupt.take();
    Ok(match typed {
        Typed::Line(line) => Some(line.trim().to_owned()).filter(|line| !line.is_empty()),
        Typed::End | Typed::Interrupted => None,
    })
}
