"""What a statement that is believed becomes: every field as the rules see it, within what the model proposed."""

from __future__ import annotations

from hermes_memory.adapters.model_extractor.contract import Statement
from hermes_memory.adapters.model_extractor.locating import occurrences
from hermes_memory.adapters.model_extractor.placing import Place
from hermes_memory.adapters.rule_extractor.building import with_date
from hermes_memory.adapters.rule_extractor.data import Regex, Rules
from hermes_memory.adapters.rule_extractor.lasting import NOTE
from hermes_memory.adapters.rule_extractor.when import Moment
from hermes_memory.core.candidate import Candidate, Marker, Span, SpeechAct
from hermes_memory.core.dimensions import Dimension, Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, Intent, Polarity, Scope, Source
from hermes_memory.core.reasons import Reason
from hermes_memory.core.scope import wider

PLAN, EVENT, OPINION = "plan", "event", "opinion"
GENERAL = "interest"  # what the rules call a liking whose kind they do not know
_NARROW = frozenset({Marker.TEMPORARY, Marker.CONDITIONAL})
_FROM = ("从", "自", "from ", "since ", "starting ")


class Shaper:
    """Makes candidates of statements that the floor bears."""

    def __init__(self, rules: Rules, dimensions: Dimensions, done: Regex, wished: Regex, over: Regex) -> None:
        self._rules, self._dimensions = rules, dimensions
        self._done, self._wished, self._over = done, wished, over

    def candidate(
        self, said: Statement, place: Place, key: str, act: SpeechAct, subject: str, rule: Candidate | None
    ) -> Candidate | Reason:
        """The candidate; a refusal where the words that say when do not stand in the quote.

        ``key`` and ``act`` are settled, ``rule`` is what the rules read of the same thing.
        """
        if said.when and not occurrences(
            place.turn.content, said.when, [(place.start, place.end)], case=False
        ):
            return Reason.UNGROUNDED
        finer = rule is not None and rule.category is not Category.EVENT and rule.dimension != GENERAL
        of = rule.dimension if rule is not None and finer else key
        entry = self._dimensions.get(of)
        markers = place.clause.markers | (rule.markers if rule else frozenset())
        moment = self._moment(said, place, markers)
        past = place.heard.past(place.start, place.end, markers) or self._is_over(place, rule)
        ahead = (
            not past
            and entry is not None
            and entry.category is Category.FACT
            and (_ahead(place, moment, markers) or self._is_wished(place, rule))
        )
        episode = past or ahead or act is SpeechAct.OPINION or _is_event(said, entry, rule)
        dimension = _of_episode(of, entry, act, ahead=ahead) if episode else of
        if episode and moment is not None:
            markers -= {Marker.TEMPORARY}  # the words name a date, not a passing wish
        weight = self._rules.weights.get(dimension) or self._rules.weights[NOTE]
        valid_from = moment.at if moment and (episode or Marker.LASTING_CHANGE in markers) else None
        valid_to = place.turn.created_at if past else None
        if valid_from and valid_to and valid_from > valid_to:
            valid_from = None
        return Candidate(
            span=Span(place.turn.message_id, place.start, place.end, place.turn.session_id),
            content=self._content(said, place, moment if episode else None),
            category=Category.EVENT if episode else entry.category if entry else Category.FACT,
            layer=None if episode or entry is None else entry.layer,
            subject=subject,
            predicate=_predicate(said, place, of),
            object=place.thing,
            dimension=dimension,
            polarity=rule.polarity if rule else said.polarity,
            negative=_is_negative(said, rule) and not past,
            granularity=said.granularity,
            scope=_scope(said, markers, place),
            speech_act=act,
            markers=markers,
            source=Source(said.source),
            intent=_intent(said, act, markers, rule),
            emotional=said.emotional or place.heard.act_at(place.object_start) is SpeechAct.VENTING,
            stability=weight.stability if said.stability is None else min(said.stability, weight.stability),
            importance=weight.importance
            if said.importance is None
            else min(said.importance, weight.importance),
            topic=weight.topic,
            entities=_entities(said, place, moment),
            valid_from=valid_from,
            valid_to=valid_to,
        )

    def _is_over(self, place: Place, rule: Candidate | None) -> bool:
        """Whether it is told of what was; what the rules read stands as they read it."""
        over = self._over.search(place.heard.mirror, place.clause.start, place.clause.end)
        return rule is None and over is not None

    def _is_wished(self, place: Place, rule: Candidate | None) -> bool:
        """Whether it is wished or planned; what the rules read as a fact is none."""
        wished = self._wished.search(place.heard.mirror, place.clause.said, place.object_start)
        return rule is None and wished is not None

    def _moment(self, said: Statement, place: Place, markers: frozenset[Marker]) -> Moment | None:
        """The date in the words the model points to, else in the clause; one within the object is the value itself."""
        spans = [(place.clause.start, place.clause.end), (place.start, place.end)]
        if said.when:
            spans = occurrences(place.turn.content, said.when, [(place.start, place.end)], case=False)
        found = (place.heard.moment(start, end, markers) for start, end in spans)
        moment = next((one for one in found if one is not None), None)
        moment = self._not_ahead(moment, place) if moment else None
        if moment is None or (place.object_start < moment.end and moment.start < place.object_end):
            return None
        return moment

    def _not_ahead(self, moment: Moment, place: Place) -> Moment | None:
        """What has happened is not ahead: the last such time, or none where when it was is not said."""
        clause = place.clause
        ahead = moment.side(place.turn.created_at) > 0
        if not (ahead and self._done.search(place.heard.mirror, clause.start, clause.end)):
            return moment
        earlier = moment.before()
        return None if earlier.ahead else earlier

    def _content(self, said: Statement, place: Place, moment: Moment | None) -> str:
        """In the model's choice of the user's words, else the clauses themselves."""
        content = said.content.strip()
        if not content:
            text = place.turn.content
            whole = self._trimmed(text[max(place.start, place.clauses[0].said) : place.end])
            content = whole if len(whole) <= MAX_CONTENT_CHARS else self._trimmed(said.quote)
        return with_date(content, moment) if moment is not None else content

    def _trimmed(self, words: str) -> str:
        return self._rules.grammar.strip_content.sub("", words).strip()


def _ahead(place: Place, moment: Moment | None, markers: frozenset[Marker]) -> bool:
    """Whether it is told of a later day: it does not hold yet ("我下个月搬到杭州")."""
    if moment is None or moment.side(place.turn.created_at) <= 0 or Marker.HABITUAL in markers:
        return False
    return not place.heard.mirror[: moment.start].lower().endswith(_FROM)  # a change that is declared now


def _is_event(said: Statement, entry: Dimension | None, rule: Candidate | None) -> bool:
    if rule is not None and rule.category is Category.EVENT:
        return True
    return said.category is Category.EVENT or entry is None or entry.category is Category.EVENT


def _of_episode(key: str, entry: Dimension | None, act: SpeechAct, *, ahead: bool) -> str:
    """An episode fills no slot: it bears on a dimension of episodes."""
    if act is SpeechAct.OPINION:
        return OPINION
    if ahead:
        return PLAN
    return key if entry is None or entry.category is Category.EVENT else EVENT


def _predicate(said: Statement, place: Place, key: str) -> str:
    words = said.predicate.strip()
    stands = words and occurrences(place.turn.content, words, [(place.start, place.end)], case=False)
    return words if stands else key


def _is_negative(said: Statement, rule: Candidate | None) -> bool:
    return rule.negative if rule else said.negative and said.polarity is Polarity.NEGATIVE


def _scope(said: Statement, markers: frozenset[Marker], place: Place) -> Scope:
    """The narrower of what the model proposes and what the wording allows."""
    unknown = place.clause.subject is not None and place.clause.subject.unknown
    floor = Scope.SESSION if unknown else Scope.USER
    if markers & _NARROW and Marker.LASTING_CHANGE not in markers:
        floor = Scope.SCENE if place.turn.scene else Scope.SESSION
    return floor if wider(said.scope, floor) else said.scope


def _intent(said: Statement, act: SpeechAct, markers: frozenset[Marker], rule: Candidate | None) -> Intent:
    """A correction is one only where words of correction stand."""
    if Marker.CORRECTION in markers:
        return Intent.CORRECTION
    if rule is not None:
        return rule.intent
    if act is SpeechAct.DIRECTIVE:
        return Intent.TASK_INSTRUCTION
    return Intent.STATEMENT if said.intent in (Intent.CORRECTION, Intent.CONFIRMATION) else said.intent


def _entities(said: Statement, place: Place, moment: Moment | None) -> tuple[str, ...]:
    """Those that stand in the words, as they stand there."""
    text, within = place.turn.content, [(place.start, place.end)]
    spans = [span for name in said.entities for span in occurrences(text, name, within, case=False)[:1]]
    found = [text[start:end] for start, end in spans] + ([moment.label] if moment else [])
    return tuple(dict.fromkeys(found))
