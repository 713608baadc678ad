"""Which function decides which command."""

from __future__ import annotations

from hermes_memory.app import commands, confirming, editing, feedback, ingest, maintaining, nights, settling
from hermes_memory.app.desk import Decision, Desk, Handlers
from hermes_memory.app.state import UserState

HANDLERS: Handlers = {
    commands.Ingest: ingest.ingest,
    commands.Settle: settling.settle,
    commands.FailExtraction: settling.fail_extraction,
    commands.EndSession: ingest.end,
    commands.EndIdleSessions: ingest.end_idle,
    commands.MarkAsked: ingest.mark_asked,
    commands.Edit: editing.edit,
    commands.Delete: editing.delete,
    commands.ConfirmMemory: editing.confirm_memory,
    commands.FreezeMemory: editing.freeze_memory,
    commands.RequestUnfreeze: editing.request_unfreeze,
    commands.AnswerChallenge: editing.answer_challenge,
    commands.AnswerConfirmation: confirming.answer_confirmation,
    commands.SetPaused: maintaining.set_paused,
    commands.SetConsent: maintaining.set_consent,
    commands.EraseKind: editing.erase_kind,
    commands.Maintain: nights.maintain,
    commands.Feedback: feedback.feedback,
    commands.BringBack: maintaining.reactivate,
}


def decide(state: UserState, command: commands.Command, desk: Desk) -> Decision:
    """What ``command`` does to ``state``: one commit, decided without any I/O."""
    return HANDLERS[type(command)](state, command, desk)
