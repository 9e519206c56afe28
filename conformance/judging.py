"""Answers the tasks of a run: verdicts on cases, the cause of a failure, the card of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from uop.conformance import wire
from uop.conformance.card.card import observe
from uop.conformance.case import Case, CaseId, InvalidCase
from uop.conformance.delivery import not_listed
from uop.conformance.exercised import exercised
from uop.conformance.generate import case_by_id
from uop.conformance.judge import Judge
from uop.conformance.options import OBSERVED, profile_of_run
from uop.conformance.repro import find_cause
from uop.conformance.verdict import Status, Verdict, fault_from_json
from uop.conformance.vocabulary import Vocabulary, vocabulary_from_json, vocabulary_of
from uop.conformance.workers import Session
from uop.spec.errors import BackendError
from uop.spec.latitude import STRICT
from uop.spec.profile_text import parse_profile


def answer(worker: Session, profile: str, seed: int, out: int) -> None:
    """Say who is judged on the descriptor `out`, then answer what comes on standard input.

    ClosedError when the other side has gone.
    """
    _reply(out, {"hello": wire.hello_to_json(worker.hello)})
    chosen = profile_of_run(profile, worker.hello)
    # One that is observed comes as a task.
    judge = Judge(worker, STRICT if chosen == OBSERVED else parse_profile(chosen))
    judging = _Judging(judge, seed, vocabulary_of([worker.hello]))
    try:
        while True:
            task, _ = wire.read(0)
            _reply(out, judging.answered(task))
    except BackendError as error:
        _reply(out, {"lost": str(error)})


@dataclass(slots=True)
class _Judging:
    """A judge, and what its cases are made from."""

    judge: Judge
    seed: int
    vocabulary: Vocabulary

    def answered(self, task: wire.Json) -> wire.Json:
        if "card" in task:
            return {"card": observe(self.judge.session).to_json()}
        if "profile" in task:
            self.judge.profile = parse_profile(task["profile"])
            self.vocabulary = vocabulary_from_json(task["vocabulary"])
            return {}
        if "fault" in task:
            fault = fault_from_json(task["fault"])
            return {"finding": asdict(find_cause(self.judge, self._case(task["ids"][0]), fault))}
        return self._judged(task["ids"])

    def _case(self, id: str) -> Case | InvalidCase:
        return case_by_id(id, self.seed, self.vocabulary)

    def _judged(self, ids: Sequence[str]) -> wire.Json:
        """One verdict per id, and what each case exercises, or would where it is skipped.

        A case that the id alone shows to be beyond the backend is not made at all.
        """
        reasons = {id: not_listed(CaseId.parse(id), self.judge.session.hello) for id in ids}
        made = {id: self._case(id) for id, reason in reasons.items() if not reason}
        judged = {verdict.id: verdict for verdict in self.judge.judge(list(made.values()))}
        verdicts = [
            judged.get(id) or Verdict(id, Status.SKIPPED, reason=r) for id, r in reasons.items()
        ]
        return {
            "verdicts": [asdict(v) for v in verdicts],
            "exercised": [exercised(made[v.id]) if v.id in made else None for v in verdicts],
            "peak": self.judge.session.peak,
        }


def _reply(out: int, header: wire.Json) -> None:
    wire.write(out, wire.Packer().frame(header))
