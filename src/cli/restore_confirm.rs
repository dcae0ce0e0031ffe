//! Consent to a restore: name and serial typed back on a terminal, or the exact number for automation.

use std::io::{BufRead, IsTerminal, Write};

use crate::facts::object::ObjectRef;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::restore::RestoreJudgement;

/// What the flags say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    pub yes: bool,
    pub forget: Option<u64>,
}

/// The decision before anybody is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    Given,
    Ask,
    Refused(String),
}

/// Decides from flags, judgement and whether there is a terminal.
pub fn consent(given: Given, judgement: &RestoreJudgement, deleting: bool, terminal: bool) -> Consent {
    let needs_number = judgement.needs_number(deleting);
    if let Some(number) = given.forget {
        return match judgement.forgotten {
            Some(count) if count == number => Consent::Given,
            Some(count) => Consent::Refused(format!(
                "`--yes-forget-resources={number}` does not match: {count} resource instances would be forgotten"
            )),
            None => Consent::Refused(
                "how many resource instances would be forgotten is not known, so no number can stand for consent"
                    .to_string(),
            ),
        };
    }
    if given.yes && !needs_number {
        return Consent::Given;
    }
    if given.yes {
        return Consent::Refused(match judgement.forgotten {
            None => "`--yes` is not enough: what would be forgotten is not known; answer on a terminal".to_string(),
            Some(_) => {
                let why = if deleting { "the object is being deleted" } else { "resources would be forgotten" };
                format!("`--yes` is not enough while {why}; `--yes-forget-resources=N` is")
            }
        });
    }
    if terminal { Consent::Ask } else { Consent::Refused("there is no terminal to confirm on".to_string()) }
}

/// Asks on the terminal. Whether the name and the serial were typed back exactly.
pub fn ask(object: &ObjectRef, serial: i64) -> bool {
    let expected = format!("{} {serial}", object.name);
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "To go on, type the object's name and the serial ({}): ", visible(&expected));
    let _ = stderr.flush();
    drop(stderr);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) => matches(&line, &expected),
        Err(_) => false,
    }
}

fn matches(line: &str, expected: &str) -> bool {
    line.split_whitespace().eq(expected.split_whitespace())
}

/// Whether somebody can be asked.
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Consent by flags or by typing; what is missing is said.
pub fn confirm(given: Given, judgement: &RestoreJudgement, object: &ObjectRef, serial: i64, deleting: bool) -> bool {
    match consent(given, judgement, deleting, has_terminal()) {
        Consent::Given => true,
        Consent::Ask if ask(object, serial) => true,
        Consent::Ask => {
            stderr_line("refused: that is not what was asked for; nothing was changed");
            false
        }
        Consent::Refused(why) => {
            stderr_line(&format!("refused: {why}; nothing was changed"));
            if let Some(count) = judgement.forgotten.filter(|_| given.forget.is_none()) {
                stderr_line(&format!("hint: for automation, `--yes-forget-resources={count}`"));
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(forgotten: Option<u64>) -> RestoreJudgement {
        RestoreJudgement { findings: Vec::new(), gaps: Vec::new(), serial: Some(41), requested: false, forgotten }
    }

    #[test]
    fn consent_is_exact() {
        let refused = |c: &Consent| matches!(c, Consent::Refused(_));
        for (case, yes, number, forgotten, deleting, terminal, expected) in [
            ("asked on a terminal", false, None, Some(4), false, true, "ask"),
            ("no terminal", false, None, Some(0), false, false, "refused"),
            ("yes, nothing forgotten", true, None, Some(0), false, false, "given"),
            ("yes, something forgotten", true, None, Some(4), false, true, "refused"),
            ("yes, deleting", true, None, Some(0), true, true, "refused"),
            ("yes, unknown", true, None, None, false, true, "refused"),
            ("the number", false, Some(4), Some(4), false, false, "given"),
            ("the number, deleting", false, Some(0), Some(0), true, false, "given"),
            ("another number", false, Some(3), Some(4), false, true, "refused"),
            ("a number for the unknown", false, Some(0), None, false, true, "refused"),
        ] {
            let got = consent(Given { yes, forget: number }, &judgement(forgotten), deleting, terminal);
            let got = match &got {
                Consent::Given => "given",
                Consent::Ask => "ask",
                r if refused(r) => "refused",
                Consent::Refused(_) => "refused",
            };
            assert_eq!(got, expected, "{case}");
        }
        assert!(matches("prod 41\n", "prod 41"));
        assert!(!matches("yes\n", "prod 41") && !matches("prod\n", "prod 41") && !matches("", "prod 41"));
    }
}
