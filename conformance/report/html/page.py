"""A report as one self-contained page of HTML, which loads nothing and runs nothing."""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files

from uop.conformance.protocol.wire import Json
from uop.conformance.report.html.markup import Html, block, code, pairs, section, table, tag
from uop.conformance.report.html.page_accuracy import accuracy
from uop.conformance.report.html.page_card import card
from uop.conformance.report.html.page_failures import FIRST, failures, first_failures, rules
from uop.conformance.report.html.page_known import known
from uop.conformance.report.html.page_ledger import ledger
from uop.conformance.report.html.page_matrix import matrix
from uop.conformance.report.junit import first_failed
from uop.conformance.run.commands import (
    CORPUS,
    case_command,
    files_command,
    lost_command,
    more_command,
    repro_command,
)

HEAD = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
)
MARKS = {"conforms": "✓", "does not conform": "✕", "inconclusive": "?"}
CLASSES = {"conforms": "good", "does not conform": "bad", "inconclusive": "open"}
MOST_VOTES = 200
LINKS = (
    ("failures", "Failures"),
    ("known", "Known failures"),
    ("rules", "Rules"),
    ("vote", "Votes"),
    ("accuracy", "Accuracy"),
    ("skipped", "Not judged"),
    ("card", "Device card"),
    ("ledger", "Ledger"),
    ("run", "This run"),
)


def page(report: Json) -> str:
    """The whole document. The first screen: the verdict, three failures, the next step, matrix."""
    every = [report, *report.get("others", [])]
    title = f"{report['backend']['name']}: {report['summary']['verdict']}"
    css = files("uop.conformance.report.html").joinpath("page.css").read_text(encoding="utf-8")
    parts = [
        section(
            "failures",
            "Failures",
            *(_named(one, failures(one, k), every) for k, one in enumerate(every)),
        ),
        section("known", "Known failures", *(_named(one, known(one), every) for one in every)),
        section("rules", "What the language says about these ops", rules(every)),
        section("vote", "Who disagrees with whom", _vote(report)),
        section("accuracy", "Accuracy", *(_named(one, accuracy(one), every) for one in every)),
        section("skipped", "Not judged", *(_named(one, _skipped(one), every) for one in every)),
        section("card", "Device card", *(_named(one, card(one), every) for one in every)),
        section(
            "ledger",
            "Ledger",
            *(_named(one, ledger(one.get("ledger", {})), every) for one in every),
        ),
        section("run", "This run", *(_named(one, _run(one), every) for one in every)),
    ]
    links = "".join(
        tag("a", label, href=f"#{id}")
        for id, label in LINKS
        if any(part.startswith(f'<section id="{id}"') for part in parts)
    )
    failed = next((one for one in every if one["failures"]), report)
    first = "".join(map(_verdict, every)) + first_failures(every) + _next(failed)
    main = tag("div", first, class_="first") + matrix(every) + tag("nav", links) + "".join(parts)
    head = HEAD + tag("title", escape(title)) + tag("style", css)
    body = tag("body", tag("main", main))
    return f"<!doctype html>\n{tag('html', tag('head', head) + body, lang='en')}\n"


def _named(one: Json, inside: Html, every: list[Json]) -> Html:
    """A part about one of several backends says about which."""
    if len(every) == 1 or not inside:
        return inside
    return tag("h3", escape(one["options"]["backend"])) + inside


def _verdict(report: Json) -> Html:
    backend, summary = report["backend"], report["summary"]
    verdict = summary["verdict"]
    who = f"{backend['name']} {backend['version']} on {backend['device']}"
    mark = tag("span", MARKS[verdict], aria_hidden="true")
    early = " so far: the run was interrupted" if summary["interrupted"] else ""
    heading = tag("h1", f"{mark} {escape(backend['name'])} {_says(verdict)}{early}")
    return tag(
        "header",
        heading + tag("p", escape(f"{_why(report)} {who}.")) + _figures(summary),
        class_=CLASSES[verdict],
    )


def _says(verdict: str) -> str:
    return "was not judged" if verdict == "inconclusive" else verdict


def _why(report: Json) -> str:
    summary = report["summary"]
    failed, crashed, programs = summary["failed"], summary["crashed"], summary["programs"]
    match summary["verdict"]:
        case "conforms" if summary["known"]:
            return (
                f"All but {summary['known']:,} of {programs:,} programs gave results that the "
                "language allows; those that did not are known failures."
            )
        case "conforms":
            return f"Every one of {programs:,} programs gave results that the language allows."
        case "inconclusive":
            return f"Nothing can be said: {summary['open_because']}."
    if failed + crashed:
        crashes = f" {crashed:,} of them ended it." if crashed else ""
        all_ = f"{failed + crashed:,} of {programs:,} programs"
        return f"{all_} gave what the language forbids.{crashes}"
    if not report["failures"]:
        return "No program failed, but lines of the file of known failures are out of date."
    return "No program failed, but where it may choose it does two things at once."


def _figures(summary: Json) -> Html:
    found = [
        ("programs", f"{summary['programs']:,}"),
        ("values compared", f"{summary['elements']:,}"),
        ("failed", f"{summary['failed'] + summary['crashed']:,}"),
        *([("known failures", f"{summary['known']:,}")] if summary["known"] else []),
        ("not judged", f"{summary['skipped']:,}"),
        ("time", _duration(summary["seconds"])),
    ]
    shown = (tag("div", tag("dt", name) + tag("dd", value)) for name, value in found)
    return tag("dl", "".join(shown), class_="figures")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _next(report: Json) -> Html:
    """The one command to type now."""
    options = report["options"]
    if report["failures"]:
        command = repro_command(options, report["failures"][0]["repro"])
        what = "Next, run the first of them again:"
    elif failed := [cell for cell in report["cells"] if cell["failed"]]:
        command = case_command(options, first_failed(report, failed[0]))
        what = "Next, run the first of them again:"
    elif stale := [line["stale"] for line in report["known"] if line["stale"]]:
        command, what = stale[0], "Next, mend the file of known failures:"
    elif CORPUS in options:
        command, what = files_command(options), "Next, judge the files again:"
    elif report["summary"]["lost"]:
        command, what = lost_command(options), "Next, see on which program it is lost:"
    elif report["summary"]["passed"]:
        command = more_command(options)
        what = "Next, check more programs:"
    else:
        command, what = "uop backends", "Next, see what can be judged here:"
    more = len(report["failures"]) - FIRST
    rest = tag("a", f"{more} more causes", href="#failures") if more > 0 else ""
    return tag("div", tag("p", what) + block(command) + rest, class_="next")


def _vote(report: Json) -> Html:
    vote = report.get("vote")
    if not vote:
        return ""
    missing = "".join(tag("p", escape(f"Not started: {why}")) for why in vote["missing"])
    rows = [
        [
            code(case["id"]),
            escape(case["verdict"] + (f": {', '.join(case['odd'])}" if case["odd"] else "")),
            *(escape(case["says"].get(name, "")) for name in vote["backends"]),
        ]
        for case in vote["cases"][:MOST_VOTES]
    ]
    more = len(vote["cases"]) - MOST_VOTES
    said = tag("p", f"and {more:,} more cases") if more > 0 else ""
    if not rows:
        return missing + tag("p", "No case failed on any of them.")
    header = ["case", "says the vote", *vote["backends"]]
    return missing + table("Cases that failed somewhere", header, rows, "wide") + said


def _skipped(report: Json) -> Html:
    counts: Counter[str] = Counter()
    ops: dict[str, set[str]] = {}
    for cell in report["cells"]:
        for reason, count in cell["skipped"].items():
            counts[reason] += count
            ops.setdefault(reason, set()).add(cell["op"])
    rows = [
        [escape(reason), f"{count:,}", escape(" ".join(sorted(ops[reason])))]
        for reason, count in counts.most_common()
    ]
    listed = [[escape(why), "", ""] for why in report["summary"]["untried"]]
    header = ["reason", "programs", "ops"]
    found = table("Programs that were not judged, and why", header, rows, "wide") if rows else ""
    more = table("Listed by the backend, yet not judged", header[:1], listed) if listed else ""
    return found + more


def _run(report: Json) -> Html:
    options, summary = report["options"], report["summary"]
    chosen = ("effort", "levels", "ops", "dtypes", "cases", "examples", "seconds", "timeout")
    given = [(name, options[name]) for name in chosen if options.get(name)]
    found: list[tuple[str, Html]] = [
        ("backend", code(options["backend"])),
        ("judged by the profile", code(report["profile"])),
        ("seed", escape(str(options["seed"]))),
        *((name, escape(" ".join(v) if isinstance(v, list) else str(v))) for name, v in given),
        ("results with one allowed value", f"{summary['single_share']:.1%}"),
        ("results tightly bounded", f"{summary['constrained_share']:.1%}"),
        ("memory, at most", f"{summary['peak_bytes'] >> 20:,} MiB"),
        ("version of the suite", escape(report["suite"])),
        *((name, code(text)) for name, text in report.get("origin", {}).items() if text),
        ("do its verdicts hold?", code("uop replay REPORT.json --sample 100")),
    ]
    return pairs(found)
