"""One user turn: sentences, clauses, statements; and why the rest holds nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hermes_memory.adapters.rule_extractor import affirming
from hermes_memory.adapters.rule_extractor.amending import amend_earlier, amend_last, without_retracted
from hermes_memory.adapters.rule_extractor.building import Builder, Words
from hermes_memory.adapters.rule_extractor.clauses import Clause, Sentence, sentences
from hermes_memory.adapters.rule_extractor.data import At, Rules
from hermes_memory.adapters.rule_extractor.draft import Draft, Stretch, Thread, settled
from hermes_memory.adapters.rule_extractor.ending import Known, ended, faded
from hermes_memory.adapters.rule_extractor.marking import inherited, markers_in
from hermes_memory.adapters.rule_extractor.matching import Matcher, Reading, Setting
from hermes_memory.adapters.rule_extractor.mending import Standing, mended, restated, standing_in
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.opening import Opener, Opening
from hermes_memory.adapters.rule_extractor.speech import REASON_OF, SILENT, bare, is_question, listen
from hermes_memory.adapters.rule_extractor.when import Moment, find_moment
from hermes_memory.core.candidate import Affirmation, Candidate, Marker, Refusal, Span, SpeechAct
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, Layer, Memory, Polarity, Role, Turn
from hermes_memory.core.reasons import Reason

_MASK = re.compile(r"\[[a-z]+\]")  # what the privacy gate left in place of a secret
_MIN_NOTE = 8  # characters of a sentence about somebody close that say more than who it is
_PASTIME = "leisure"  # the topic of what people compare in conversation: singers, films, games
_CJK = re.compile(r"[一-鿿]")
_OWN = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_VERBLESS = re.compile(
    r"(?:an?|the|\w+(?:ing|ed)|single|vegan|vegetarian|severe|from|originally|allergic|not)\b", re.IGNORECASE
)
_WORD = re.compile(r"[\w']+")


class TurnReader:
    """Reads single turns; holds no state between them."""

    def __init__(self, rules: Rules, dimensions: Dimensions) -> None:
        self._rules = rules
        self._dimensions = dimensions
        self._opener = Opener(rules.grammar)
        self._matcher = Matcher(rules, self._opener)
        self._builder = Builder(rules, dimensions)

    def read(
        self,
        turn: Turn,
        before: Turn | None,
        known: tuple[Memory, ...],
        earlier: Sequence[Candidate] = (),
        last: Turn | None = None,
    ) -> tuple[list[Candidate], list[Affirmation], list[Refusal]]:
        """Candidates, affirmations and refusals of one user turn; ``before`` is the turn just before it.

        ``known`` and ``earlier``, what was read in the turns before, are what a correction may speak of; ``last`` is
        the user's own last turn, of which a bare value may be the correction.
        """
        draft = self._drafted(turn, before, [*standing_in(known), *standing_in(earlier)])
        if draft is None:
            return [], [], [Refusal(turn.message_id, Reason.FILLER, turn.session_id)]
        if not draft.items:
            self._amend(draft, last)
        return self._finish(draft, known)

    def weighed(self, turn: Turn, before: Turn | None) -> tuple[list[str], str]:
        """The English words of a turn whose worth decides, and the question before them: to fit the points."""
        draft = self._drafted(turn, before, [])
        return (draft.weighed, draft.question) if draft else ([], "")

    def _drafted(self, turn: Turn, before: Turn | None, standing: list[Standing]) -> Draft | None:
        """What a turn says; None if it is all filler."""
        mirror = simplified(turn.content)
        if self._rules.speech.filler.fullmatch(bare(mirror)) or not mirror.strip():
            return None
        parts = tuple(sentences(mirror, self._rules.grammar.clause_break))
        tone = listen(mirror, parts, self._rules.speech, self._rules.grammar)
        draft = Draft(turn, mirror, tone, standing=standing, question=self._question(before))
        seen: set[str] = set()
        for part in parts:
            words = mirror[part.start : part.end]
            if words not in seen:  # a sentence pasted a thousand times is one
                seen.add(words)
                self._sentence(draft, part)
        if not draft.items:
            self._answer(draft, before)
        return draft

    # --- one sentence

    def _sentence(self, draft: Draft, part: Sentence) -> None:
        thread = Thread(part, self._markers(draft, part.start, part.end))
        count = len(draft.items)
        for clause in part.clauses:
            self._clause(draft, thread, clause)
        if thread.subject is not None:
            draft.topic = None if thread.subject.is_user else thread.subject
        silent = len(draft.items) == count and not thread.said and not thread.asked
        if silent and _CJK.search(draft.mirror, part.start, part.end):
            self._note(draft, thread, Stretch(part.start, part.end, thread.who), alone=True)
            return
        for stretch in thread.unread:
            self._note(draft, thread, stretch, alone=False)

    def _markers(self, draft: Draft, start: int, end: int) -> frozenset[Marker]:
        return markers_in(draft.mirror, start, end, self._rules.markers)

    def _clause(self, draft: Draft, thread: Thread, clause: Clause) -> None:
        act = draft.tone.at(clause.start)
        if act in SILENT:
            draft.refuse(REASON_OF[act])
            thread.said, thread.open = True, False
            return
        opening = self._opener.read(
            draft.turn.content, draft.mirror, clause.start, clause.end, draft.spoken_of
        )
        thread.meet(draft, opening)
        if self._shares(draft, thread, clause, opening):
            thread.prefix = opening.content if thread.prefix is None else thread.prefix
            return
        if opening.rest >= clause.end and opening.subject is None:
            if opening.content < clause.end and thread.prefix is None:
                thread.prefix = opening.content
            return
        if is_question(draft.mirror, thread.sentence, clause, self._rules.speech):
            thread.addressed = bool(
                self._rules.grammar.addressed.match(draft.mirror, clause.start, clause.end)
            )
            draft.refuse(REASON_OF[act] if act is not SpeechAct.STATEMENT else Reason.QUESTION)
            thread.asked, thread.open = True, False
            return
        self._state(draft, thread, clause, opening)
        thread.prefix = None

    @staticmethod
    def _shares(draft: Draft, thread: Thread, clause: Clause, opening: Opening) -> bool:
        """Whether a clause is only the first of two subjects: "My wife Sarah" of "My wife Sarah and I …"."""
        alone = opening.subject is not None and opening.rest >= clause.end
        joint = draft.mirror[clause.end : thread.sentence.end].lower().strip()
        return alone and joint.startswith("and i ")

    def _state(self, draft: Draft, thread: Thread, clause: Clause, opening: Opening) -> None:
        alone = (clause.start, clause.end) == (thread.sentence.start, thread.sentence.end)
        own = thread.markers if alone else self._markers(draft, clause.start, clause.end)
        start = opening.content if thread.prefix is None else thread.prefix
        if thread.prefix is not None:
            own |= self._markers(draft, thread.prefix, clause.start)
        names_subject = opening.subject is not None and thread.prefix is None
        markers = inherited(own, thread.markers, thread.before, names_subject)
        moment = self._moment(draft, start, clause.end, markers)
        text = draft.turn.content
        setting = Setting(text, markers, moment is not None, thread.subject, thread.subject is not None)
        found = self._matcher.read(draft.mirror, opening, clause.end, setting)
        found = [self._of_topic(draft, thread, reading) for reading in found]
        over = self._ended(draft, thread, clause, opening)
        if over:
            found = [*(reading for reading in found if not self._idle(reading, over[0])), *over]
        thread.before = markers if not names_subject else own
        if opening.subject is not None:
            thread.addressed = False
        elif thread.addressed and found and found[0].pattern.act is not SpeechAct.DIRECTIVE:
            return  # "你在花店帮忙，又爱养多肉": not the user
        elif self._rules.grammar.addressed.match(draft.mirror, clause.start, clause.end):
            thread.addressed = True
        if found and opening.subject is None and thread.describes_last(draft, found[0]):
            thread.lengthen(draft, clause.end)
            return
        if found and thread.judges(draft) and found[0].pattern.act is SpeechAct.OPINION:
            thread.lengthen(draft, clause.end)  # one judgement in the user's own words, not one per clause
            return
        if not found:
            if amend_last(draft, clause.end, self._rules.grammar):
                thread.said, thread.open = True, False
            elif not self._mend(draft, thread, clause, opening):
                self._unread(draft, thread, clause, opening)
            return
        self._add(draft, thread, found, start, clause.end, markers, moment)

    def _add(
        self,
        draft: Draft,
        thread: Thread,
        found: list[Reading],
        start: int,
        end: int,
        markers: frozenset[Marker],
        moment: Moment | None,
    ) -> None:
        if self._leans_on_another(draft, thread, found[0]):
            markers |= {Marker.HEDGED}
        ends = sorted({reading.end for reading in found})
        for reading in found:
            index = ends.index(reading.end)
            a = min(start, reading.start) if index == 0 else ends[index - 1]
            b = end if reading.end == ends[-1] else reading.end
            act, emotional = self._act(draft, reading, a)
            lead = self._lead(draft, reading, found[0], a)
            says = reading.start if reading.pattern.at is At.TAIL else a
            draft.items.append(
                (
                    reading,
                    Words(
                        start=reading.subject.start if lead else a,
                        end=b,
                        act=act,
                        markers=markers,
                        moment=moment,
                        emotional=emotional,
                        says=says,
                        lead_subject=lead,
                        past=self._past(draft, a, b, markers),
                    ),
                )
            )
        thread.last = len(draft.items) - 1
        thread.said, thread.open = True, False
        if not found[0].subject.is_user and "s" in found[0].pattern.regex.groupindex:
            thread.subject = draft.spoken_of = found[0].subject  # the pattern itself named it

    def _of_topic(self, draft: Draft, thread: Thread, reading: Reading) -> Reading:
        """Chinese leaves out who is meant: "我妈今年58了。有高血压。" says of her what holds of people."""
        entry, row = self._dimensions.get(reading.dimension), reading.pattern
        if draft.topic is None or thread.subject is not None or reading.named or row.language != "zh":
            return reading
        lasting = entry is not None and entry.category in (Category.FACT, Category.PREFERENCE)
        if not lasting or row.own or row.category is Category.EVENT:
            return reading
        return replace(reading, subject=draft.topic)

    def _leans_on_another(self, draft: Draft, thread: Thread, reading: Reading) -> bool:
        """Whether the turn's first statement is a liking that agrees or compares with another's words."""
        entry, grammar = self._dimensions.get(reading.dimension), self._rules.grammar
        if draft.items or entry is None or entry.layer is not Layer.PREFERENCE:
            return False
        words = draft.mirror[thread.sentence.start : reading.end]
        pastime = self._rules.weights[reading.dimension].topic == _PASTIME
        return bool((pastime and grammar.rather.search(words)) or grammar.echo.search(words))

    def _past(self, draft: Draft, start: int, end: int, markers: frozenset[Marker]) -> bool:
        if Marker.LASTING_CHANGE in markers:
            return False  # "two years ago I moved here" holds still
        return self._rules.grammar.past.search(draft.mirror[start:end]) is not None

    @staticmethod
    def _lead(draft: Draft, reading: Reading, first: Reading, start: int) -> str:
        """What stands before words that name nobody: "I'm" before "in Leeds", "My sister" before "speaks Arabic"."""
        text, subject = draft.turn.content, reading.subject
        if reading.pattern.at is At.TAIL:
            verb = _WORD.match(draft.mirror, first.start)
            return text[subject.start : verb.end() if verb else first.start].strip()
        if reading.named or subject.start >= start:
            return ""
        if not subject.is_user:
            return subject.mention
        own, bare = _OWN.match(draft.mirror, subject.start), _VERBLESS.match(draft.mirror, reading.start)
        return text[subject.start : own.end()] if own and not bare else ""

    def _act(self, draft: Draft, reading: Reading, start: int) -> tuple[SpeechAct, bool]:
        act = draft.tone.at(start)
        heated = act is SpeechAct.VENTING  # a safety statement made in anger is still a statement
        if heated and self._dimensions.safety(reading.dimension) is not None:
            act = SpeechAct.STATEMENT
        return act, heated

    def _moment(self, draft: Draft, start: int, end: int, markers: frozenset[Marker]) -> Moment | None:
        if Marker.HABITUAL in markers:
            return None  # "every Friday" is not a date
        turn = draft.turn
        return find_moment(draft.mirror, start, end, turn.created_at, turn.timezone)

    def _idle(self, reading: Reading, over: Reading) -> bool:
        """Whether a reading says nothing beside what is over: an episode, or the old value named again."""
        entry = self._dimensions.get(reading.dimension)
        episode = entry is not None and entry.category is Category.EVENT
        same = reading.dimension == over.dimension
        return (
            episode or reading.polarity is Polarity.NEGATIVE or (same and over.polarity is Polarity.NEGATIVE)
        )

    def _ended(self, draft: Draft, thread: Thread, clause: Clause, opening: Opening) -> list[Reading]:
        """What the clause says is over, or begins again, of all that was stated before."""
        known = Known(draft.standing, self._rules, self._dimensions)
        if not known.standing:
            return []
        if self._rules.endings.unless.search(draft.mirror, clause.start, clause.end):
            return []
        found = ended(draft.mirror, clause.end, opening, known)
        if found or draft.tone.at(clause.start) is not SpeechAct.STATEMENT:
            return found
        return faded(draft.mirror, thread.sentence.start, clause, opening, thread.subject, known)

    def _mend(self, draft: Draft, thread: Thread, clause: Clause, opening: Opening) -> bool:
        if not self._rules.grammar.mended.fullmatch(draft.mirror, opening.content, clause.end):
            return False
        said = [self._builder.build(draft.turn, draft.mirror, *item) for item in draft.items]
        standing = [*draft.standing, *standing_in(said)]
        hit = mended(draft.mirror, opening.content, clause.end, standing, self._rules)
        if hit is None:
            return False
        reading, old = hit
        thing = draft.turn.content[reading.thing.start : reading.thing.end]
        act = draft.tone.at(clause.start)
        words = Words(
            opening.content,
            clause.end,
            act,
            thread.markers,
            None,
            says=opening.content,
            content=restated(old, thing),
        )
        draft.items.append((reading, words))
        thread.said, thread.open = True, False
        return True

    # --- what is left

    def _unread(self, draft: Draft, thread: Thread, clause: Clause, opening: Opening) -> None:
        mirror, speech = draft.mirror, self._rules.speech
        said = mirror[opening.content : clause.end]
        if thread.judges(draft) or (thread.last is not None and self._rules.grammar.tail.match(said)):
            thread.lengthen(draft, clause.end)
            return
        if speech.command.match(said) or speech.task.match(said):
            draft.refuse(Reason.COMMAND)
            thread.said, thread.open = True, False
            return
        thread.leave(clause.start if thread.prefix is None else thread.prefix, clause.end)

    def _question(self, before: Turn | None) -> str:
        """The last thing the assistant asked, if it asked."""
        if before is None or before.role is not Role.ASSISTANT:
            return ""
        mirror = simplified(before.content)
        asking = [one for one in sentences(mirror, self._rules.grammar.clause_break) if one.asks]
        return mirror[asking[-1].start : asking[-1].end] if asking else ""

    def _worth(self, draft: Draft, start: int, end: int) -> bool:
        words = draft.mirror[start:end]
        if _CJK.search(words):
            return self._rules.grammar.note.search(words) is not None
        draft.weighed.append(words)
        return self._rules.worth.keeps(words, draft.question)

    def _note(self, draft: Draft, thread: Thread, part: Stretch, *, alone: bool) -> None:
        """Keep unread words that tell something; Chinese ones that do not stand alone only if it lasts."""
        act = draft.tone.at(part.start)
        start = self._opener.skip_leads(draft.mirror, part.start, part.end)
        if start >= part.end:
            return
        lasting = self._rules.lasting.dimension(draft.mirror[start : part.end], alone=alone)
        if not (alone or lasting) and _CJK.search(draft.mirror, start, part.end):
            return
        if act is not SpeechAct.STATEMENT:
            draft.refuse(REASON_OF[act])
            return
        if part.end - start > MAX_CONTENT_CHARS:
            draft.refuse(Reason.TOO_LONG)
            return
        if _MASK.search(draft.mirror, start, part.end):
            draft.refuse(Reason.PRIVACY)
            return
        if not self._tells(draft, part, thread, start) and lasting is None:
            draft.refuse(Reason.LOW_VALUE)
            return
        if thread.subject is not None and thread.subject.unknown:
            lasting = None
        # a day within what lasts is one that returns, not a date
        moment = None if lasting else self._moment(draft, start, part.end, thread.markers)
        words = Words(start, part.end, act, thread.markers, moment, says=start, lasting=lasting)
        draft.notes.append((part.who, words))

    def _tells(self, draft: Draft, part: Stretch, thread: Thread, start: int) -> bool:
        """Whether unread words state something: by their own worth, or because they name somebody close."""
        subject = thread.first
        named = subject is not None and not subject.is_user and not subject.unknown
        here = named and subject is not None and part.start <= subject.start < part.end
        if here and _CJK.search(draft.mirror, part.start, part.end):
            return part.end - start >= _MIN_NOTE
        return self._worth(draft, start, part.end)

    def _answer(self, draft: Draft, before: Turn | None) -> None:
        for reading in affirming.answer(draft.mirror, draft.turn, before, self._rules):
            words = Words(
                reading.start, reading.end, SpeechAct.STATEMENT, frozenset(), None, says=reading.start
            )
            draft.items.append((reading, words))
            draft.notes.clear()
            draft.reasons.clear()

    def _amend(self, draft: Draft, earlier: Turn | None) -> None:
        """A bare "no, Shanghai": the value for what the user said last."""
        if earlier is None or not self._rules.grammar.amend.match(draft.mirror):
            return
        said = self._drafted(earlier, None, [])
        if said and said.items and (item := amend_earlier(draft, said, self._rules.grammar)):
            draft.items.append(item)
            draft.notes.clear()
            draft.reasons.clear()

    # --- the end

    def _finish(
        self, draft: Draft, known: tuple[Memory, ...]
    ) -> tuple[list[Candidate], list[Affirmation], list[Refusal]]:
        items = without_retracted(draft, settled(draft, self._dimensions), self._rules.grammar)
        named = [(reading, affirming.thing_words(draft.turn.content, reading.thing)) for reading, _ in items]
        memories = affirming.affirmed(draft.mirror, named, known, self._rules)
        turn = draft.turn
        span = Span(turn.message_id, 0, len(turn.content), turn.session_id)
        affirmations = [Affirmation(memory.id, span) for memory in memories]
        kept = [
            item
            for item, (reading, words) in zip(items, named, strict=True)
            if not any(affirming.same(reading, words, memory) for memory in memories)
        ]
        candidates = [self._builder.build(turn, draft.mirror, reading, words) for reading, words in kept]
        if not affirmations:
            candidates += [self._builder.note(turn, draft.mirror, who, words) for who, words in draft.notes]
        silent = not candidates and not affirmations and not draft.reasons
        reasons = [Reason.LOW_VALUE] if silent else draft.reasons
        if candidates or affirmations:
            reasons = [reason for reason in reasons if reason is not Reason.LOW_VALUE]
        return (
            candidates,
            affirmations,
            [Refusal(turn.message_id, reason, turn.session_id) for reason in reasons],
        )
