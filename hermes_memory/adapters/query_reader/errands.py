"""Whether a query is a task that no personal memory bears on, and whether it speaks of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hermes_memory.adapters.query_reader.data import ErrandRule, ErrandWords, Form
from hermes_memory.core.asking import Errand

_OPENERS = 4  # "hi, please, can you tell me"
_TALK_CHARS = 120  # small talk is short


@dataclass(frozen=True, slots=True)
class Task:
    """What a query wants done, and whether it names or concerns the user."""

    errand: Errand | None
    personal: bool


class ErrandReader:
    """Tries the errands in order; holds no state between texts."""

    def __init__(self, words: ErrandWords) -> None:
        self._words = words

    def read(self, form: Form, *, about_past: bool) -> Task:
        """The errand of a text in its search form. What was said before is no errand, whatever it was about."""
        words = self._words
        bare = form.cut(words.payload)
        forms = [(one, self._beginnings(one)) for one in self._spelt_out(form)]
        for rule in words.rules:
            if _is_whole(rule, form):
                return Task(rule.errand, personal=False)  # "I love you" is about nobody
            if any(_matches(rule, one, places) for one, places in forms) and not rule.veto.found_in(bare):
                own = words.user.found_in(words.polite.cut_from(bare))
                if own and (about_past or rule.errand is Errand.GENERAL or rule.errand is Errand.SMALL_TALK):
                    break
                return Task(rule.errand, own)
        return Task(None, self._is_personal(form, bare))

    def _is_personal(self, form: Form, bare: Form) -> bool:
        """Whether what is no errand is the user's own: it names them, wants something for them, or is of their life."""
        words = self._words
        if words.user.found_in(words.telling.cut_from(form)):
            return True
        return words.wish.found_in(bare) or words.life.found_in(bare)

    def _spelt_out(self, form: Form) -> list[Form]:
        """The form, and where it holds "what's" the one with "what is"."""
        if not form.latin:
            return [form]
        text = self._words.contracted.sub(self._words.expanded, form.text)
        return [form] if text == form.text else [form, replace(form, text=text)]

    def _beginnings(self, form: Form) -> list[int]:
        """Where the task may begin: at once, or behind each of the words that lead up to it."""
        places = [len(form.text) - len(form.text.lstrip())]
        while len(places) <= _OPENERS and (hit := self._words.opens.match(form.text, places[-1])):
            places.append(hit.end())
        return places


def _matches(rule: ErrandRule, form: Form, places: Sequence[int]) -> bool:
    return any(rule.start.opens(form, at) for at in places) or rule.gives_away(form)


def _is_whole(rule: ErrandRule, form: Form) -> bool:
    """Whether the query is made of nothing but the errand's phrases."""
    return (
        rule.whole is not None and len(form.text) <= _TALK_CHARS and rule.whole.match(form.text) is not None
    )
