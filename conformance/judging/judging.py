"""Answers the tasks of a run: judges cases, shrinks failures, observes the card of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from uop.conformance.checks import OBSERVED, OptionError
from uop.conformance.coverage.exercised import exercised
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.lowering import not_listed
from uop.conformance.judging.verdict import Status, Verdict, fault_from_json
from uop.conformance.profile.card import observe
from uop.conformance.protocol import wire
from uop.conformance.run.options import profile_of_run
from uop.conformance.suite.case import CaseId
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.own_cases import AnyCase, FileJudge, OwnCases
from uop.conformance.suite.vocabulary import Vocabulary, vocabulary_from_json, vocabulary_of
from uop.conformance.workers.transport import Session
from uop.spec.errors import BackendError, InvalidError, MalformedError
from uop.spec.latitude import STRICT
from uop.spec.text.profile_text import parse_profile


def answer(worker: Session, profile: str, seed: int, out: int, folder: str = "") -> None:
    """Write the hello of the backend to the descriptor `out`, then answer tasks from stdin.

    ClosedError where the run has closed the pipe.
    """
    _reply(out, {"hello": wire.hello_to_json(worker.hello)})
    try:
        tasks = Tasks.of(worker, profile, seed, Path(folder) if folder else None)
        while True:
            task, _ = wire.read(0)
            _reply(out, tasks.answered(task))
    except (BackendError, MalformedError, InvalidError, OptionError) as error:
        _reply(out, {"lost": str(error)})


@dataclass(slots=True)
class Tasks:
    """Answers the tasks of a run, on cases of the suite by a seed and on those of the adopter.

    Random programs are sampled from the vocabulary.
    """

    judge: Judge
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

    def answered(self, task: wire.Json) -> wire.Json:
        """The answer to a task. BackendError where the backend cannot be started again."""
        if "card" in task:
            return {"card": observe(self.judge.session).to_json()}
        if "profile" in task:
            self.judge.profile = parse_profile(task["profile"])
            self.vocabulary = vocabulary_from_json(task["vocabulary"])
            return {}
        if "fault" in task:
            case = self._case(task["ids"][0])
            finding = self.own.find_cause(self.judge, case, fault_from_json(task["fault"]))
            return {"finding": asdict(finding)}
        return self._judged(task["ids"])

    def _case(self, id: str) -> AnyCase:
        return self.own.find(id) or case_by_id(id, self.seed, self.vocabulary)

    def _judged(self, ids: Sequence[str]) -> wire.Json:
        """One verdict per id, and the points of the spec that each case exercises.

        A case is not generated where its id shows that the backend does not support it.
        """
        session, own = self.judge.session, self.own
        reasons = {
            id: own.meaningless(id) or not_listed(CaseId.parse(id), session.hello) for id in ids
        }
        cases = {id: self._case(id) for id, reason in reasons.items() if not reason}
        judged = {verdict.id: verdict for verdict in self.judge.judge(list(cases.values()))}
        verdicts = [
            judged.get(id) or Verdict(id, Status.SKIPPED, reason=r) for id, r in reasons.items()
        ]
        return {
            "verdicts": [asdict(v) for v in verdicts],
            "exercised": [exercised(cases[v.id]) if v.id in cases else None for v in verdicts],
            "peak": session.peak,
        }


def _reply(out: int, header: wire.Json) -> None:
    wire.write(out, wire.Packer().frame(header))
