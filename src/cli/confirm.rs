//! Typed confirmation: the exact text back, from a terminal, or nothing happens.

use std::io::{self, BufRead, IsTerminal, Write};

use super::error::CommandError;
use crate::output::escape::visible;
use crate::output::stderr_line;

/// Asks until the end of one line for exactly `expected`. Without a terminal, at the end of input and with
/// any other text it refuses.
pub fn typed_back(question: &str, expected: &str) -> Result<(), CommandError> {
    require_terminal()?;
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{} ", visible(question)).and_then(|()| stderr.flush());
    asked.map_err(|e| CommandError::failed("write the question").caused_by(e.to_string()))?;
    drop(stderr);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let count = read.map_err(|e| CommandError::failed("read the confirmation").caused_by(e.to_string()))?;
    if count == 0 {
        stderr_line("");
        return Err(CommandError::refused("the confirmation was not given (end of input)"));
    }
    if line.trim_end_matches(['\n', '\r']) == expected {
        Ok(())
    } else {
        Err(CommandError::refused("what was typed is something else; nothing was changed"))
    }
}

/// Refuses when there is nobody to ask.
pub fn require_terminal() -> Result<(), CommandError> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(());
    }
    Err(CommandError::refused("a confirmation has to be typed, and there is no terminal to type it on"))
}
