//! `--method lease`: one update, also when its answer is lost.

use super::*;

fn is_the_update(request: &Request) -> bool {
    request.is("PUT", "/leases/lock-")
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_write_without_an_answer_is_settled_by_reading() {
    let scene = Scene::new(&engines().docker, terraform_image());
    let lease = ["--method", "lease"];
    // It never arrived.
    let gate = scene.server.at(Act::Cut, is_the_update);
    let output = run(&mut scene.command(&lease));
    let needles =
        ["the lock is still held; nothing was released", "the answer to the write was lost", "run the command again"];
    exits(&output, 1, &needles);
    assert_eq!(gate.seen(), 1);
    assert!(scene.held());
    assert_eq!(scene.claim_lease(), None, "the claim stays");
    // It arrived, and nobody said so.
    let gate = scene.server.at(Act::Swallow, is_the_update);
    let output = run(&mut scene.command(&lease));
    exits(&output, 0, &["info[unlock-done]", "whose answer was lost; the lock is free now"]);
    assert_eq!(gate.seen(), 1);
    assert_eq!(scene.server.requests().iter().filter(|r| is_the_update(r)).count(), 2, "a write was sent twice");
    assert_eq!(scene.workspace.holder(), None);
    let events = ground().list("Event", scene.name(), "");
    assert!(events.iter().any(|e| e["reason"] == "UnlockedByHand"), "{events:?}");
}
