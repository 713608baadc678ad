"""The scope floor: the extractor proposes, the rule decides how far a statement reaches (SPEC §4.1.7)."""

from __future__ import annotations

from hermes_memory.core.candidate import Candidate, Marker, SpeechAct
from hermes_memory.core.model import Category, Scope, Source

_REACH = (Scope.SESSION, Scope.SCENE, Scope.USER)
_NOT_MEANT = {SpeechAct.JOKE, SpeechAct.HYPOTHETICAL, SpeechAct.IRONY, SpeechAct.QUOTATION, SpeechAct.VENTING}


def passing(candidate: Candidate) -> bool:
    """Whether the wording is temporary or conditional and marks no lasting change.

    What is dated by nature (an EVENT with its time) is not lowered for naming that time.
    """
    if Marker.CONDITIONAL in candidate.markers:
        return True
    dated = candidate.category is Category.EVENT and candidate.valid_from is not None
    return (
        Marker.TEMPORARY in candidate.markers and Marker.LASTING_CHANGE not in candidate.markers and not dated
    )


def wider(left: Scope, right: Scope) -> bool:
    """Whether ``left`` reaches further than ``right``."""
    return _REACH.index(left) > _REACH.index(right)


def settled_scope(candidate: Candidate, scene: str | None) -> Scope:
    """The scope a candidate gets: what it proposes, lowered to the floor its wording allows.

    Without a scene in the request there is no scene to belong to: the session is the next narrower scope.
    """
    if candidate.speech_act in _NOT_MEANT or (candidate.scope is Scope.SCENE and not scene):
        return Scope.SESSION
    near = Scope.SCENE if scene else Scope.SESSION
    hedged = Marker.HEDGED in candidate.markers and Marker.HABITUAL not in candidate.markers
    if candidate.source is Source.INFERRED or passing(candidate) or hedged:
        return near if wider(candidate.scope, near) else candidate.scope
    return candidate.scope
