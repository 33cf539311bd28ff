"""The kill matrix: which rule catches which broken client in which story, and how soon random exploration finds it.

``python -m tests.kill_matrix`` (or ``make kill-matrix``) makes every run and writes ``docs/kill-matrix.md``; it takes
some minutes on all cores. ``tests/end_to_end/test_kill_matrix.py`` keeps the page complete and true.
"""

import importlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final

import msgspec

from harness.expectations import EXPECTATION
from harness.explore.exploration import explore
from harness.rules.registry import all_rules
from harness.runner import run
from harness.subjects import Subject, resolve
from scenarios.loading import load, load_catalogue
from scenarios.model import Scenario

__all__ = ["PAGE", "SAFEGUARDS", "clients", "module", "safeguard_rows", "stories"]

FOLDER: Final = Path(__file__).parent / "broken_clients"
PAGE: Final = Path(__file__).parent.parent / "docs" / "kill-matrix.md"

EXAMPLES: Final = 300
"""How long exploration may look for one client's fault. A longer look finds more; this is what a coffee takes."""

SEED: Final = 1
NAMED_STORIES: Final = 3
"""Stories that are named in a row; the others are counted."""

SAFEGUARDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "the record is stored before the create leaves": ("worker.Worker._act", "sends_before_recording"),
        "the token is minted once and stored": ("creating.Creating.new_token", "new_token_per_retry"),
        "the token goes where the contract says": ("adapters.jobs.JobsAdapter.create", "token_never_sent"),
        "the token has 160 random bits": ("creating.Creating.new_token", "short_tokens"),
        "each operation has a token of its own": ("creating.Creating.open", "one_token_for_all"),
        "the request is stored and sent again byte for byte": ("workflow.Workflow.request", "body_written_anew"),
        "the request is sent as it was given": ("adapters.jobs.JobsAdapter.prepare", "makes_text_of_parameters"),
        "another request under a known id is refused": (
            "creating.Creating.same_request",
            "changed_request_same_operation",
        ),
        "a changed submit is refused aloud": ("creating.Creating.same_request", "swallows_a_changed_submit"),
        "an answer is compared with what was asked for": (
            "scheduling.Scheduling.is_ours",
            "believes_a_careless_replay",
        ),
        "without a token nothing is sent again": (
            "creating.Creating.reconciling_path",
            "believes_in_tokens_everywhere",
        ),
        "a token is not used beyond its lifetime": ("creating.Creating.token_is_alive", "tokens_live_for_ever"),
        "a token's age counts from its first use": ("creating.Creating.token_is_alive", "tokens_stay_young"),
        "the create deadline ends the trying": ("workflow.Workflow._when_unknown", "tries_creating_for_ever"),
        "a rejection is told from a doubt": ("adapters.jobs.JobsAdapter.read_create", "retries_a_rejection"),
        "a refused retry says nothing of the first attempt": (
            "creating.Creating.conclude_create",
            "believes_a_refused_retry",
        ),
        "a synchronous success is a path of its own": (
            "adapters.jobs.JobsAdapter.read_create",
            "synchronous_taken_for_accepted",
        ),
        "a token that is taken is no rejection": ("adapters.jobs.JobsAdapter.read_create", "taken_token_means_failed"),
        "an unanswered create is unknown, not failed": ("creating.Creating.conclude_create", "unanswered_means_failed"),
        "only an answer makes a create accepted": ("creating.Creating.conclude_create", "guesses_the_job_id"),
        "a doubt is reconciled before anybody is asked": (
            "creating.Creating.reconciling_path",
            "asks_a_person_at_the_first_doubt",
        ),
        "only an authoritative look-up proves absence": (
            "creating.Creating.conclude_lookup",
            "believes_every_look_up",
        ),
        "the look-up is the one that the provider offers": (
            "adapters.jobs.JobsAdapter.lookup",
            "looks_up_what_is_not_offered",
        ),
        "what nothing can resolve goes to a person": ("workflow.Workflow._when_reconciling", "fails_what_nobody_knows"),
        "a person is told what about": ("client.summarise", "needs_a_human_and_says_no_more"),
        "another job id stops everything": ("scheduling.Scheduling.violation", "ignores_another_job_id"),
        "a job id on record is never overwritten": ("observing.Observing._observe", "overwrites_the_job_id"),
        "the job id is stored before it is used": ("creating.Creating.accept", "history_forgets_the_job"),
        "one worker observes, under a lease": ("stores.protocol.OperationStore.claim", "no_lease"),
        "a lease lasts until the answer is there": ("worker.Worker._work", "gives_the_lease_back_too_soon"),
        "a lease is taken over only when it has run out": (
            "stores.protocol.OperationStore.claim",
            "takes_leases_by_force",
        ),
        "the lease is looked at last thing before sending": (
            "worker.Worker._call",
            "sends_without_looking_at_the_lease",
        ),
        "a dead worker's operations are taken over": ("stores.protocol.OperationStore.claim", "to_each_his_own"),
        "the next poll time is stored": ("scheduling.Scheduling.try_again", "schedule_in_memory"),
        "Retry-After is obeyed": ("polling.read_retry_after", "polls_through_retry_after"),
        "waits grow": ("polling.backoff_s", "polls_at_a_fixed_rate"),
        "waits have a cap": ("polling.backoff_s", "waits_without_a_cap"),
        "waits are drawn": ("polling.backoff_s", "waits_without_chance"),
        "there is a wait between two reads, whatever was answered": (
            "scheduling.Scheduling.delay_s",
            "hammers_the_status",
        ),
        "the result deadline ends the polling": ("workflow.Workflow._when_observing", "polls_past_the_deadline"),
        "only the state steers": ("observing.Observing.steering_phase", "trusts_progress_100"),
        "states are read in the provider's words": ("config.StatusTerms", "knows_one_vocabulary"),
        "every end of a job ends the polling": ("observing.Observing.steering_phase", "waits_for_success_only"),
        "an end is believed when it is read": ("observing.Observing.steering_phase", "waits_to_be_sure_of_the_end"),
        "a failed read is no failed job": ("observing.Observing._nothing_learned", "failed_poll_is_failed_job"),
        "an end that nobody asked for is one": ("observing.Observing._end", "waits_on_for_a_cancelled_job"),
        "signatures are verified": ("webhooks.Verifier", "believes_any_signature"),
        "what has no signature is not believed": ("webhooks.Verifier.is_signed", "believes_the_unsigned"),
        "a webhook's timestamp is looked at": ("webhooks.Verifier", "webhooks_for_ever"),
        "an event is taken once": ("webhooks.EventIntake", "acts_on_every_delivery"),
        "an event is noted once it is verified": ("webhooks.EventIntake.take", "knows_events_before_it_verifies_them"),
        "which events were taken is stored": (
            "stores.protocol.OperationStore.take_event",
            "knows_events_until_it_dies",
        ),
        "events go by their own ids": ("stores.protocol.OperationStore.take_event", "takes_one_event_per_job"),
        "an event that is known is acknowledged": ("webhooks.EventIntake.take", "refuses_what_it_has_already"),
        "a webhook only leads to a status read": ("commanding.Commanding._take_event", "webhook_counts_as_success"),
        "moves are checked against the table": ("lifecycle.check", "skips_a_state"),
        "each move is an entry of the history": ("steps.Draft.move", "forgets_to_record_acceptance"),
        "each entry says why": ("steps.Draft._write", "keeps_no_reasons"),
        "each entry names the job": ("steps.Draft._write", "drops_the_job_id_later"),
        "each call is on record before the next": ("workflow.Workflow.begin", "records_only_transitions"),
        "the intent to cancel is recorded first": ("workflow.Workflow.begin", "cancels_before_recording"),
        "one cancel call for one intent": ("cancelling.Cancelling.may_call_cancel", "cancels_at_every_poll"),
        "only a command cancels": ("workflow.Workflow._when_observing", "cancels_at_the_deadline"),
        "a cancel goes where it is offered": ("cancelling.Cancelling.may_call_cancel", "cancels_where_it_cannot"),
        "a cancel is believed once a status read shows it": (
            "cancelling.Cancelling._taken",
            "claims_cancelled_on_sending",
        ),
        "a job that is to be cancelled is read on": ("workflow.Workflow._when_cancelling", "cancels_and_looks_away"),
        "the cancel deadline ends the watching": ("workflow.Workflow._when_cancelling", "watches_a_cancel_too_long"),
        "a stop that comes early is kept": ("commanding.Commanding._take_stop", "drops_an_early_stop"),
        "what was sent is not withdrawn": ("workflow.Workflow._when_pending", "withdraws_what_was_sent"),
        "what has ended is not cancelled": ("cancelling.Cancelling.may_call_cancel", "cancels_what_has_ended"),
        "what is to be stopped is not begun": ("creating.Creating._absent", "begins_what_was_stopped"),
        "a result is asked for when the job has succeeded": (
            "observing.Observing.steering_phase",
            "fetches_the_result_to_see_if_it_is_there",
        ),
        "success is a result in hand": ("workflow.Workflow._when_collecting", "success_without_the_result"),
        "a one-time result is read once": ("collection.Collecting.conclude_result", "fetches_a_result_twice"),
        "results are checked against what is stated": ("collection.judge_result", "takes_any_200_for_a_result"),
        "a result that comes inside an answer is checked, too": (
            "workflow.Workflow.collect",
            "believes_what_comes_inside",
        ),
        "the checksum is that of the bytes that came": ("collection.judge_result", "hashes_something_else"),
        "what came is stored at once": ("collection.Collecting.keep", "loses_a_result_in_hand"),
        "a result is asked for again until it is gone": (
            "collection.Collecting._not_retrieved",
            "gives_a_result_up_at_once",
        ),
        "an expired link is asked for anew": ("collection.Collecting._gone", "keeps_an_expired_link"),
        "items are looked at one by one": ("collection.judge_result", "overlooks_failed_items"),
        "items are counted in the result": ("adapters.jobs.JobsAdapter.validate_result", "counts_one_too_few"),
        "what waits for a person waits": ("workflow.Workflow.next_action", "tries_again_unasked"),
        "what a person decides is done": ("commanding.Commanding._take_decision", "files_decisions_away"),
        "what is to be looked at again is": ("commanding.Commanding._take_reconcile", "never_looks_again"),
        "at rest nobody is called": ("workflow.Workflow.next_action", "works_on_at_rest"),
        "one trace for one operation": ("creating.Creating.open", "new_trace_per_call"),
        "each call bears the trace": ("caller.Caller.call", "no_trace_at_all"),
        "the trace is not the token": ("creating.Creating.open", "token_as_trace"),
        "each call bears the credential": ("credentials.AuthorizedTransport", "polls_without_credential"),
        "credentials stay at their origin": ("credentials.GivenCredential", "follows_redirects_with_everything"),
        "credentials are kept out of records": ("scheduling.describe", "credential_in_the_history"),
        "claims come from the record": ("client.summarise", "reports_from_memory"),
        "each operation is claimed": ("client.ReferenceClient.summaries", "forgets_what_failed"),
    }
)
"""What protects the reference client: where it is, and the broken client that is the reference client without it."""

_INTRO: Final = """\
<!-- Written by `make kill-matrix`; do not edit. -->

# Kill matrix

Which rule catches which broken client, in which stories, and after how many examples random exploration comes upon it.
A client is caught where a rule is broken that the reference client keeps; it breaks none in any of these runs."""

_MATRIX: Final = """\
## Client, rule, scenario

The first row of a client is the rule it is made for. *Stories* are those of the catalogue, and those kept beside the
broken clients (in italics), in which the rule is broken. *Examples* are the runs that exploration made until it found
the client out, by whatever rule ({examples} at most, seed {seed}); `none`: it did not."""

_PROMISES: Final = """\
## Safeguards

Each safeguard of the reference client taken away, and the promise that breaks."""


class Row(msgspec.Struct, frozen=True):
    """What all stories and an exploration showed of one client."""

    client: str
    caught: dict[str, tuple[str, ...]]  # by rule: the stories
    examples: int | None  # until exploration found it; None if it did not
    found: tuple[str, ...]  # the rules it found


def clients() -> list[str]:
    """The names of all broken clients."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def module(client: str) -> ModuleType:
    """A broken client's module."""
    return importlib.import_module(f"tests.broken_clients.{client}")


def stories() -> dict[str, Scenario]:
    """The stories of the catalogue that can be simulated, and those kept beside the broken clients."""
    beside = (load(str(path)) for path in sorted((FOLDER / "scenarios").glob("*.yaml")))
    told = {**load_catalogue(), **{story.name: story for story in beside}}
    return {name: story for name, story in told.items() if "simulated" in story.modes}


def row(client: str | None) -> Row:
    """Make all runs of a client; of the reference client, for None."""
    subject = resolve(None if client is None else f"tests.broken_clients.{client}:build")
    caught: defaultdict[str, list[str]] = defaultdict(list)
    for name, story in stories().items():
        for rule in _broken(story, subject):
            caught[rule].append(name)
    found = explore(subject, examples=EXAMPLES, steps=30, seed=SEED)
    rules = tuple(dict.fromkeys(finding.rule for finding in found.findings))
    return Row(
        client=client or "reference",
        caught={rule: tuple(names) for rule, names in caught.items()},
        examples=found.examples if rules else None,
        found=rules,
    )


def _broken(story: Scenario, subject: Subject) -> list[str]:
    findings = run(story, subject).outcome.findings
    return list(dict.fromkeys(finding.rule for finding in findings if finding.rule != EXPECTATION))


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    reference, *broken = rows
    if reference.caught or reference.found:
        raise SystemExit(f"the reference client breaks {sorted({*reference.caught, *reference.found})}")
    parts = [
        _INTRO,
        _summary(broken),
        _MATRIX.format(examples=EXAMPLES, seed=SEED),
        _table(("client", "rule", "stories", "examples"), list(_matrix(broken))),
        _PROMISES,
        _table(("safeguard", "in the reference client", "without it", "promise that breaks"), list(safeguard_rows())),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(broken: Sequence[Row]) -> str:
    found = [each for each in broken if each.examples is not None]
    by_catalogue = sum(
        any(name in load_catalogue() for names in each.caught.values() for name in names) for each in broken
    )
    return (
        f"{len(broken)} broken clients, {len(all_rules())} rules, {len(stories())} stories. "
        f"The catalogue alone catches {by_catalogue} clients, exploration {len(found)}."
    )


def _matrix(broken: Sequence[Row]) -> Iterator[tuple[str, str, str, str]]:
    for each in broken:
        named = module(each.client).CAUGHT_BY
        for rule in (named, *sorted(each.caught.keys() - {named})):
            found = "none" if each.examples is None else str(each.examples)
            yield (
                f"[`{each.client}`](../tests/broken_clients/{each.client}.py)" if rule == named else "",
                f"`{rule}`",
                _told(
                    each.caught.get(rule, ()), first=Path(module(each.client).SCENARIO).stem if rule == named else None
                ),
                found if rule == named else "",
            )


def _told(names: Sequence[str], first: str | None) -> str:
    catalogue = load_catalogue()
    ordered = sorted(names, key=lambda name: (name != first, name not in catalogue, name))
    told = [f"{name}" if name in catalogue else f"*{name}*" for name in ordered[:NAMED_STORIES]]
    more = len(names) - NAMED_STORIES
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def safeguard_rows() -> Iterator[tuple[str, str, str, str]]:
    """The rows of the second table."""
    requirements = {info.id: info.requirement for info in all_rules()}
    for safeguard, (where, client) in SAFEGUARDS.items():
        rule = module(client).CAUGHT_BY
        yield safeguard, f"`{where}`", f"`{client}`", f"{requirements[rule]}: `{rule}`"


def _table(heading: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (heading, ("---",) * len(heading), *rows))


def main() -> None:
    """Make all runs and write the page."""
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        rows = list(pool.map(row, [None, *clients()]))
    PAGE.write_text(page(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
