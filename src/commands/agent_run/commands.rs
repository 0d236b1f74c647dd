//! The end of an agent's commands: what they have done to the sandbox, and what they could not reach or show.

use super::run::AgentRun;
use crate::exec::process::Processes;
use crate::sys::error::Error;

impl AgentRun<'_> {
    /// Ends the commands of an agent without a user, warns of what they could not reach or show, and returns the result
    /// of the work.
    ///
    /// # Errors
    /// Fails if the work has failed, or a command has moved what the sandbox keeps in place.
    pub fn end_commands(
        &self,
        processes: &mut Processes<'_>,
        worked: Result<String, Error>,
    ) -> Result<String, Error> {
        if !self.is_interactive() {
            processes.end();
        }
        self.warn_of_commands(processes);
        match (worked, processes.check_sandbox()) {
            (Ok(_), Err(moved)) => Err(moved.into()),
            (Err(error), Err(moved)) => {
                self.warn(moved.to_string());
                Err(error)
            }
            (worked, Ok(())) => worked,
        }
    }

    /// Warns of hosts that the commands could not reach, and of output that was withheld.
    fn warn_of_commands(&self, processes: &Processes<'_>) {
        for refusal in processes.new_refusals() {
            self.warn(format!("a command could not reach a host: {refusal}"));
        }
        let credentials = processes.new_credentials();
        if !credentials.is_empty() {
            self.warn(format!(
                "commands printed secrets, which are neither in their logs nor sent: {}",
                credentials.join(", ")
            ));
        }
    }
}
