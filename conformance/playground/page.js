// Shows the program that the page has, and asks the server for others where there is one.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = id => document.getElementById(id);
  const MOST_ROWS = 24, WAIT = 300;
  const state = { program: data.text, target: data.target, seed: 0, stage: "", step: 1, node: -1 };
  const OF_PROGRAM = ["program", "target", "seed"];
  let shown = data.shown, others = new Map(), asking = new AbortController();

  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // The state is in the address: a link shows the same.

  function link(changes) {
    const all = { ...state, ...changes };
    const kept = Object.entries(all).filter(([key]) => data.served || !OF_PROGRAM.includes(key));
    return "#" + new URLSearchParams(kept);
  }

  function readAddress() {
    const found = new URLSearchParams(location.hash.slice(1));
    const number = (key, least) => Math.max(least, parseInt(found.get(key) ?? state[key]) || 0);
    state.seed = number("seed", 0);
    state.step = number("step", 1);
    state.node = number("node", -1);
    state.stage = found.get("stage") ?? state.stage;
    if (!data.served) return;
    state.program = found.get("program") ?? state.program;
    if (data.targets.includes(found.get("target"))) state.target = found.get("target");
  }

  function set(changes) {
    Object.assign(state, changes);
    history.replaceState(null, "", link({}));
  }

  // What the server answers.

  async function ask(path, question, signal) {
    const body = JSON.stringify(question), headers = { "Content-Type": "application/json" };
    let reply;
    try {
      reply = await fetch(path, { method: "POST", headers, body, signal });
    } catch (error) {
      if (error.name == "AbortError") throw error;
      throw new Error("The server does not answer. Is `uop serve` still running?");
    }
    if (!reply.ok) throw new Error(await reply.text());
    return reply.json();
  }

  async function evaluate() {
    if (!data.served) return showAll();
    asking.abort();
    const { signal } = asking = new AbortController();
    const { program: text, target, seed } = state;
    others.clear();
    let found;
    try {
      found = await ask("evaluate", { text, target, seed }, signal);
    } catch (error) {
      if (error.name == "AbortError") return;
      found = { wrong: { message: error.message, line: 0, column: 0 }, graphs: [] };
    }
    if (signal.aborted) return;
    // What was right before stays in view while the text is wrong.
    const isKept = found.graphs.length == 0 && shown;
    document.body.classList.toggle("old", Boolean(isKept));
    shown = isKept ? { ...shown, wrong: found.wrong } : found;
    showAll();
  }

  async function compare() {
    const { signal } = asking, { program: text, seed } = state;
    at("compare").disabled = true;
    for (const backend of data.backends) {
      others.set(backend, { said: "is asked ...", outputs: [], wrong: 0 });
      showResults();
      let found;
      try {
        found = await ask("compare", { text, seed, backend }, signal);
      } catch (error) {
        if (signal.aborted) break;
        found = { said: error.message, outputs: [], wrong: 0 };
      }
      if (signal.aborted) break;
      others.set(backend, found);
      showResults();
    }
    at("compare").disabled = false;
  }

  // Verdicts take longer than all else, so they come when they are seen.
  async function giveVerdict(on, path, more, then) {
    const { signal } = asking, { program: text, target, seed } = state;
    if (!data.served || on.verdict.said || shown.wrong) return;
    let verdict;
    try {
      verdict = await ask(path, { text, target, seed, ...more }, signal);
    } catch (error) {
      verdict = { said: error.message, is_good: false };
    }
    if (signal.aborted) return;
    on.verdict = verdict;
    then();
  }

  // The program and its errors.

  function showText() {
    const text = at("text"), lines = state.program.split("\n").length;
    if (text.value != state.program) text.value = state.program;
    text.rows = Math.min(lines + 1, MOST_ROWS);
    const same = data.examples.findIndex(example => example.text == state.program);
    at("example").value = String(same);
    at("target").value = state.target;
    at("seed").value = state.seed;
  }

  function showWrong() {
    const { wrong, verdict } = shown, marks = at("marks");
    const place = wrong && wrong.line ? `line ${wrong.line}, column ${wrong.column}` : "";
    at("wrong").textContent = wrong ? (place ? place + ": " : "") + wrong.message : "";
    at("verdict").textContent = wrong ? `It does not run: an error${place && " at " + place}.` : verdict.said || "...";
    at("head").className = wrong || !verdict.is_good ? "bad" : verdict.said ? "good" : "open";
    marks.replaceChildren();
    if (!place) return;
    const lines = state.program.split("\n"), line = lines[wrong.line - 1] ?? "";
    const before = lines.slice(0, wrong.line - 1).map(each => each + "\n").join("");
    const begin = Math.min(wrong.column, line.length) - 1;
    const word = /^[%\w.]+|^./.exec(line.slice(begin)) ?? [" "];
    marks.append(before + line.slice(0, begin), make("mark", {}, word[0]));
    marks.scrollTop = at("text").scrollTop;
    marks.scrollLeft = at("text").scrollLeft;
  }

  // The results.

  function showResults() {
    const given = [...others].filter(([, found]) => found.outputs.length);
    at("results").hidden = !shown.outputs.length;
    at("top").classList.toggle("compared", given.length > 0);
    at("outputs").replaceChildren(...shown.outputs.map((output, k) => table(output, k, given)));
    at("others").replaceChildren(make("dl", {}, ...[...others].flatMap(([backend, found]) => [
      make("dt", {}, backend), make("dd", found.wrong ? { class: "wrong" } : {}, found.said),
    ])));
  }

  function table(output, k, given) {
    const titles = ["element", "value", "accepted", ...given.map(([backend]) => backend)];
    const rows = output.elements.map((element, i) => make("tr", {},
      make("th", { scope: "row" }, `[${element.place}]`),
      make("td", {}, make("code", {}, element.value)),
      make("td", {}, make("code", {}, element.accepted)),
      ...given.map(([, found]) => {
        const { value, is_accepted } = found.outputs[k][i];
        const attributes = is_accepted ? {} : { class: "wrong", title: "not accepted" };
        return make("td", attributes, make("code", {}, value + (is_accepted ? "" : " ✗")));
      }),
    ));
    const more = output.left_out ? `, and ${output.left_out} more elements` : "";
    const head = make("tr", {}, ...titles.map(title => make("th", { scope: "col" }, title)));
    const inside = [make("caption", {}, `output ${output.number}${more}`), make("thead", {}, head)];
    const whole = make("table", {}, ...inside, make("tbody", {}, ...rows));
    return make("div", { class: "scroll results", tabindex: "0" }, whole);
  }

  // The stages: a graph, and its nodes as lines.

  const stageNumber = () => Math.max(0, shown.stages.findIndex(s => s.name == state.stage));

  function showStage() {
    const number = stageNumber(), stage = shown.stages[number];
    at("stages").hidden = !stage;
    if (!stage) return;
    const isSame = number > 0 && stage.graph == shown.stages[number - 1].graph;
    const graph = shown.graphs[stage.graph];
    at("stage").max = shown.stages.length - 1;
    at("stage").value = number;
    at("stage").setAttribute("aria-valuetext", stage.name);
    at("stage-back").disabled = number == 0;
    at("stage-on").disabled = number == shown.stages.length - 1;
    const fresh = isSame ? 0 : graph.nodes.filter(node => node.is_new).length;
    const count = `${graph.left_out + graph.nodes.length} nodes`;
    const change = isSame ? ", as before" : fresh ? `, ${fresh} new` : "";
    const position = shown.stages.length > 1 ? `${number} of ${shown.stages.length - 1}: ` : "";
    at("stage-name").textContent = `${position}${stage.name} (${count}${change})`;
    const cut = graph.left_out ? ` The first ${graph.left_out} nodes are not shown.` : "";
    at("about").textContent = (number ? stage.about : "The program as it is written.") + cut;
    // The text of a drawing is escaped where it is made.
    if (at("graph").dataset.shown != graph.svg) at("graph").innerHTML = graph.svg;
    at("nodes").replaceChildren(...graph.nodes.map((node, k) => {
      const value = node.value ? [make("small", {}, node.value)] : [];
      const attributes = { tabindex: "-1", class: node.is_new && !isSame ? "new" : "" };
      return make("li", attributes, make("code", {}, node.line), ...value);
    }));
    drawnNodes().forEach((group, k) => group.classList.toggle("new", graph.nodes[k].is_new && !isSame));
    showNode();
  }

  const drawnNodes = () => [...at("graph").querySelectorAll("svg > g")];

  function showNode() {
    const rows = [...at("nodes").children], groups = drawnNodes();
    for (const each of document.querySelectorAll(".chosen")) each.classList.remove("chosen");
    const row = rows[state.node];
    (row ?? rows.at(-1)).tabIndex = 0;
    showProperties(row ? state.node : rows.length - 1);
    if (!row) return intoView(at("graph"), groups[0]);
    row.classList.add("chosen");
    groups[state.node].classList.add("chosen");
    intoView(at("nodes"), row);
    intoView(at("graph"), groups[state.node]);
    if (stageNumber() != shown.stages.length - 1) return;
    for (const line of at("lines").querySelectorAll(`[data-node="${state.node}"]`)) line.classList.add("chosen");
  }

  // As scrollIntoView, but the page stays where it is.
  function intoView(box, inside) {
    const outer = box.getBoundingClientRect(), inner = inside.getBoundingClientRect();
    for (const [low, high, key] of [["top", "bottom", "scrollTop"], ["left", "right", "scrollLeft"]]) {
      if (inner[low] < outer[low] || inner[high] > outer[high])
        box[key] += (inner[low] + inner[high] - outer[low] - outer[high]) / 2;
    }
  }

  function showProperties(k) {
    const group = drawnNodes()[k];
    const rows = group ? group.querySelector("title").textContent.split("\n") : [];
    at("properties").replaceChildren(...rows.flatMap(row => {
      const cut = row.indexOf(": ");
      return [make("dt", {}, row.slice(0, cut)), make("dd", {}, row.slice(cut + 2))];
    }));
  }

  function choose(k) {
    for (const row of at("nodes").children) row.tabIndex = -1;
    set({ node: k });
    showNode();
  }

  function goToStage(number) {
    const stage = shown.stages[Math.min(Math.max(number, 0), shown.stages.length - 1)];
    const first = shown.steps.findIndex(step => step.stage == stage.name);
    set({ stage: stage.name, node: -1, ...(first < 0 ? {} : { step: first + 1 }) });
    showStage();
    showStep();
  }

  // The firings of rules, and the source.

  function showStep() {
    const count = shown.steps.length, step = shown.steps[state.step - 1];
    at("steps").hidden = shown.stages.length < 2;
    at("step").max = Math.max(count, 1);
    at("step").value = state.step;
    at("step").disabled = at("step-back").disabled = at("step-on").disabled = !count;
    if (step) {
      at("step-back").disabled = state.step <= 1;
      at("step-on").disabled = state.step >= count;
    }
    const more = shown.steps_left_out ? ` (${shown.steps_left_out} more are not shown)` : "";
    at("step-name").textContent = step ? `${state.step} of ${count}${more}: ${step.stage} / ${step.rule}` : "No rule fires.";
    at("step").setAttribute("aria-valuetext", at("step-name").textContent);
    at("sides").replaceChildren(...(step ? [["matched", step.matched], ["made", step.made]] : []).map(
      ([title, text]) => make("div", {}, make("p", { class: "quiet" }, title), make("pre", { tabindex: "0" }, text))));
    const verdict = step ? step.verdict : { said: "", is_good: true };
    at("judgement").textContent = verdict.said;
    at("judgement").className = verdict.is_good ? "quiet" : "wrong";
    const number = state.step;
    const then = () => { if (number == state.step) showStep(); };
    if (step) giveVerdict(step, "judge", { step: number - 1 }, then);
  }

  function goToStep(number) {
    if (!shown.steps.length) return;
    const step = Math.min(Math.max(number, 1), shown.steps.length);
    const { stage } = shown.steps[step - 1], isOther = stage != state.stage;
    set({ step, stage, node: isOther ? -1 : state.node });
    if (isOther) showStage();
    showStep();
  }

  function showSource() {
    at("source").hidden = !shown.source.length;
    const last = shown.stages.at(-1)?.name;
    const rows = shown.source.map(({ text, node }) => {
      if (node < 0) return make("li", {}, make("code", {}, text || " "));
      const words = text.trimStart(), indent = text.slice(0, text.length - words.length);
      const to = make("a", { href: link({ stage: last, node }) }, words);
      return make("li", { "data-node": node }, make("code", {}, indent, to));
    });
    const more = shown.lines_left_out ? [make("li", { class: "quiet" }, `${shown.lines_left_out} more lines are not shown.`)] : [];
    at("lines").replaceChildren(...rows, ...more);
  }

  function showAll() {
    state.step = Math.min(state.step, Math.max(shown.steps?.length ?? 0, 1));
    shown = { outputs: [], stages: [], steps: [], source: [], verdict: { said: "", is_good: true }, ...shown };
    showWrong();
    showResults();
    showSource();
    showStage();
    showStep();
    giveVerdict(shown, "check", {}, showWrong);
    document.body.dataset.ready = state.program;
  }

  // What the reader does.

  function later(then) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(then, WAIT);
    };
  }

  function fill() {
    for (const heading of new Set(data.examples.map(example => example.heading))) {
      const group = make("optgroup", { label: heading });
      data.examples.forEach((example, k) => {
        if (example.heading == heading) group.append(make("option", { value: k }, example.name));
      });
      at("example").append(group);
    }
    at("example").prepend(make("option", { value: "-1" }, "your own"));
    at("target").append(...data.targets.map(name => make("option", {}, name)));
    at("choices").hidden = at("compare").hidden = !data.served;
    at("text").readOnly = !data.served;
  }

  function listen() {
    const evaluateLater = later(evaluate);
    const on = (id, kind, then) => at(id).addEventListener(kind, then);
    on("text", "input", () => {
      set({ program: at("text").value, stage: "", step: 1, node: -1 });
      showText();
      at("marks").replaceChildren();
      evaluateLater();
    });
    on("text", "scroll", () => {
      at("marks").scrollTop = at("text").scrollTop;
      at("marks").scrollLeft = at("text").scrollLeft;
    });
    on("example", "change", () => {
      const example = data.examples[at("example").value];
      if (!example) return;
      set({ program: example.text, stage: "", step: 1, node: -1 });
      showText();
      evaluate();
    });
    on("target", "change", () => { set({ target: at("target").value, step: 1, node: -1 }); evaluate(); });
    on("seed", "change", () => { set({ seed: Math.max(0, parseInt(at("seed").value) || 0) }); evaluate(); });
    on("compare", "click", compare);
    on("stage", "input", () => goToStage(Number(at("stage").value)));
    on("stage-back", "click", () => goToStage(stageNumber() - 1));
    on("stage-on", "click", () => goToStage(stageNumber() + 1));
    on("step", "input", () => goToStep(Number(at("step").value)));
    on("step-back", "click", () => goToStep(state.step - 1));
    on("step-on", "click", () => goToStep(state.step + 1));
    on("fit", "click", () => at("fit").setAttribute("aria-pressed", at("graph").classList.toggle("fit")));
    on("nodes", "click", event => chooseRow(event.target.closest("li")));
    on("nodes", "keydown", event => {
      const rows = [...at("nodes").children], k = rows.indexOf(event.target.closest("li"));
      const to = { ArrowUp: k - 1, ArrowDown: k + 1, Home: 0, End: rows.length - 1 }[event.key];
      if (to === undefined || !rows[to]) return;
      event.preventDefault();
      choose(to);
      rows[to].focus({ preventScroll: true });
    });
    const groupAt = event => drawnNodes().indexOf(event.target.closest("svg > g"));
    on("graph", "click", event => { if (groupAt(event) >= 0) choose(groupAt(event)); });
    on("graph", "mouseover", event => { if (groupAt(event) >= 0) showProperties(groupAt(event)); });
    addEventListener("hashchange", () => {
      const before = JSON.stringify(OF_PROGRAM.map(key => state[key]));
      readAddress();
      showText();
      if (before == JSON.stringify(OF_PROGRAM.map(key => state[key]))) showAll();
      else evaluate();
    });
  }

  function chooseRow(row) {
    if (row) choose([...at("nodes").children].indexOf(row));
  }

  readAddress();
  fill();
  listen();
  showText();
  evaluate();
})();
