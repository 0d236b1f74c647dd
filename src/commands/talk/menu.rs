//! Menus of models to choose from.

use crate::model::{ModelSpec, ModelTable};
use crate::run::context::Context;
use crate::ui::input::{InputError, User};
use crate::ui::tui::Menu;

/// Returns the model that the user chooses from a menu, or the message for one who chooses none; `now` is the current one.
///
/// # Errors
/// When the user interrupts it.
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

/// Builds a menu of the models in the table. The one called `now` is selected.
pub fn table_menu(context: &Context<'_>, now: &str) -> Menu {
    let models = context.models.as_ref().map_or(&[][..], ModelTable::models);
    let named = |spec: &ModelSpec| spec.display_name.clone().unwrap_or_default();
    model_menu("Choose a model", models, named, now)
}

/// Builds a menu of these models, each with its description. The one called `now` is selected.
pub fn model_menu(
    title: &str,
    models: &[ModelSpec],
    described: impl Fn(&ModelSpec) -> String,
    now: &str,
) -> Menu {
    let items = models.iter();
    let items = items.map(|spec| (spec.name.clone(), described(spec)));
    Menu {
        title: title.to_owned(),
        items: items.collect(),
        at: models.iter().position(|spec| spec.name == now).unwrap_or(0),
    }
}
