"""Answers the tasks of a run: judges cases, shrinks failures, observes the card of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uop.conformance.checks import OBSERVED, OptionError
from uop.conformance.coverage.exercised import exercised
from uop.conformance.judging import judge
from uop.conformance.judging.lowering import not_listed
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.profile.card import observe
from uop.conformance.protocol import wire
from uop.conformance.run.options import profile_of_run
from uop.conformance.run.pool import Task
from uop.conformance.run.tasks import TASKS, Done, Judge, JudgeBy, Judged, Observe, Shrink
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.own_cases import AnyCase, FileJudge, OwnCases
from uop.conformance.suite.vocabulary import Vocabulary, vocabulary_of
from uop.conformance.workers.transport import Session
from uop.spec.errors import BackendError, InvalidError, MalformedError
from uop.spec.latitude import STRICT
from uop.spec.text.profile_text import parse_profile


def answer(worker: Session, profile: str, seed: int, out: int, folder: str = "") -> None:
    """Write the hello of the backend to the descriptor `out`, then answer tasks from stdin.

    ClosedError where the run has closed the pipe.
    """
    wire.write(out, worker.hello)
    try:
        tasks = Tasks.of(worker, profile, seed, Path(folder) if folder else None)
        while True:
            wire.write(out, tasks.answered(wire.read(0, *TASKS)))
    except (BackendError, MalformedError, InvalidError, OptionError) as error:
        wire.write(out, wire.Refused(str(error)))


@dataclass(slots=True)
class Tasks:
    """Answers the tasks of a run, on cases of the suite by a seed and on those of the adopter.

    Random programs are sampled from the vocabulary.
    """

    judge: judge.Judge
    seed: int
    own: OwnCases
    vocabulary: Vocabulary

    @classmethod
    def of(cls, session: Session, profile: str, seed: int, folder: Path | None) -> Tasks:
        """Read the adopter's cases from a folder; raises the errors of `OwnCases.read`."""
        chosen, own = profile_of_run(profile, session.hello), OwnCases.read(folder)
        # An observed profile comes later, as a task.
        demanded = STRICT if chosen == OBSERVED else parse_profile(chosen)
        files = {own.made[id]: file for id, file in own.files.items()}
        judge = FileJudge(session, demanded, files)
        return cls(judge, seed, own, vocabulary_of([session.hello]))

    def answered(self, task: Task[Any]) -> object:
        """The answer to a task. BackendError where the backend cannot be started again."""
        match task:
            case Observe():
                return observe(self.judge.session)
            case JudgeBy(profile=profile, vocabulary=vocabulary):
                self.judge.profile = parse_profile(profile)
                self.vocabulary = vocabulary
                return Done()
            case Shrink(id=id, fault=fault):
                return self.own.find_cause(self.judge, self._case(id), fault)
            case Judge(ids=ids):
                return self._judged(ids)
        raise TypeError(f"no task of a judge: {task}")

    def _case(self, id: str) -> AnyCase:
        return self.own.find(id) or case_by_id(id, self.seed, self.vocabulary)

    def _judged(self, ids: Sequence[str]) -> Judged:
        """One verdict per id, and the points of the spec that each case exercises.

        A case is not generated where its id shows that the backend does not support it.
        """
        session, own = self.judge.session, self.own
        reasons = {
            id: own.meaningless(id) or not_listed(CaseId.parse(id), session.hello) for id in ids
        }
        made = {id: self._case(id) for id, reason in reasons.items() if not reason}
        judged = {verdict.id: verdict for verdict in self.judge.judge(list(made.values()))}
        verdicts = tuple(
            judged.get(id) or Verdict(id, Status.SKIPPED, reason=r) for id, r in reasons.items()
        )
        shown = tuple(exercised(made[v.id]) if v.id in made else None for v in verdicts)
        return Judged(verdicts, shown, session.peak)
