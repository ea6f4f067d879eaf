// Asks the server for the rule at each move and draws what it answers; computes nothing itself.
const byId = (id) => document.getElementById(id);
const value = (id) => byId(id).value;
const post = async (action, body) => {
  let answer;
  try {
    answer = await fetch(action, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The explorer does not answer. Was it stopped? Start it again in the terminal.");
  }
  const found = await answer.json().catch(() => ({ error: `The explorer refused the request (${answer.status}).` }));
  if (!answer.ok) throw new Error(found.error);
  return found;
};

// What the controls say ---------------------------------------------------------------------------

let columns = null;
const isRatio = () => document.querySelector("input[name=limit]:checked").value === "min_ratio";
const number = (id) => (value(id).trim() === "" ? null : Number(value(id)));
const share = (id) => (number(id) === null ? null : Number((number(id) / 100).toFixed(8)));

function chosenColumns() {
  return Object.fromEntries(["score", "group", "label", "positive", "scale"].map((id) => [id, value(id)]));
}

function settings() {
  return {
    criterion: value("criterion"),
    limit: isRatio() ? "min_ratio" : "max_gap",
    value: isRatio() ? number("limit") : share("limit"),
    cutoff: number("cutoff"),
    target: value("target"),
    rate: share("rate"),
    lower_is_better: value("direction") === "low",
  };
}

function restore(kept) {
  byId("criterion").value = kept.criterion;
  document.querySelector(`input[name=limit][value=${kept.limit}]`).checked = true;
  fitLimit();
  setDial("limit", isRatio() ? kept.value : kept.value * 100);
  setDial("cutoff", kept.cutoff);
  byId("target").value = kept.target;
  byId("direction").value = kept.lower_is_better ? "low" : "high";
  if (kept.rate !== null) setDial("rate", kept.rate * 100);
  byId("rate-field").hidden = !["number", "budget"].includes(kept.target);
}

// A number that can be typed, and a slider beside it.
function setDial(id, to) {
  const text = String(Number(Number(to).toFixed(6)));
  byId(id).value = text;
  byId(`${id}-slider`).value = text;
}

function setRange(id, low, high, step) {
  for (const input of [byId(id), byId(`${id}-slider`)]) {
    input.min = low;
    input.max = high;
  }
  byId(id).step = "any";
  byId(`${id}-slider`).step = step;
}

let reach = 0.3;
function fitLimit() {
  const ratio = isRatio();
  byId("limit-name").textContent = ratio ? "Lowest ratio" : "Largest gap";
  byId("limit-unit").textContent = ratio ? "" : "points";
  setRange("limit", 0, ratio ? 1 : 100, ratio ? 0.01 : 0.1);
  byId("limit-slider").min = ratio ? 0.5 : 0;
  byId("limit-slider").max = ratio ? 1 : Math.max(Math.ceil(reach * 100), 5);
}

// Moves -------------------------------------------------------------------------------------------

let charts = null;
let drawn = null;
let current = null;
let latest = 0;
let waiting = null;
let asking = null;

// At most one question at a time: while one is open, only the last move is remembered.
function move(first = false) {
  waiting = { first, number: (latest += 1) };
  asking ??= askAll().finally(() => { asking = null; });
  return asking;
}

async function askAll() {
  byId("report").setAttribute("aria-busy", "true");
  try {
    while (waiting) {
      const asked = waiting;
      waiting = null;
      await ask(asked);
    }
  } finally {
    byId("report").removeAttribute("aria-busy");
  }
}

async function ask({ first, number: asked }) {
  const where = byId(byId("work").hidden ? "columns-problem" : "problem");
  const wanted = settings();
  try {
    const found = await post("move", { columns, settings: wanted, decision: value("decision"), drawn });
    if (asked !== latest) return;
    where.textContent = "";
    await show(found, wanted, first);
  } catch (problem) {
    if (asked === latest) where.textContent = problem.message;
  }
}

// Replaces the report by the server's, but keeps drawn charts and what was typed.
async function show(found, asked, first) {
  current = { ...found, settings: { ...asked, cutoff: found.cutoff } };
  byId("work").hidden = false;
  byId("rows").textContent = ` · ${found.rows.toLocaleString("en-US")} rows`;
  byId("audit").innerHTML = found.audit;
  const next = document.createElement("div");
  next.innerHTML = found.report;
  for (const id of ["answer-group", "answer-score"]) {
    const [old, fresh] = [byId(id), next.querySelector(`#${id}`)];
    if (old && fresh && !first) fresh.value = old.value;
  }
  const report = byId("report");
  const focused = report.contains(document.activeElement) ? document.activeElement.id : "";
  if (!found.charts) {
    for (const place of next.querySelectorAll(".chart")) place.replaceWith(byId(place.id));
  }
  report.replaceChildren(...next.childNodes);
  if (focused) byId(focused)?.focus();
  wireAnswers(found.answers);
  reach = found.reach;
  fitLimit();
  if (first) {
    setRange("cutoff", ...(found.range ?? [-10, 10]), found.range && found.range[1] > 1 ? 1 : 0.01);
    if (!found.range) for (const end of ["min", "max"]) byId("cutoff").removeAttribute(end);
    byId("cutoff-slider").hidden = !found.range;
    setDial("cutoff", found.cutoff);
    setDial("rate", 20);
  }
  fillWarnings(found.warnings);
  setDial("limit", isRatio() ? asked.value : asked.value * 100);
  if (found.charts) {
    charts?.close();
    drawn = found.key;
    const opened = openCharts(found.charts, () => setCharts(opened));
    charts = opened;
    await opened.ready;
  }
  setCharts(charts);
  byId("status").textContent = found.headline;
  showPins();
  document.documentElement.dataset.ready = String(latest);
}

// Charts that were drawn again, for another width, show the last move.
function setCharts(opened) {
  for (const [name, tables] of Object.entries(current.tables)) opened.set(name, tables);
}

function fillWarnings(sentences) {
  byId("warnings").hidden = !sentences.length;
  byId("warnings").replaceChildren(...sentences.map((text) => element("li", text)));
}

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, one] of Object.entries(attributes)) made.setAttribute(name, one);
  return made;
}

// Two pinned rules --------------------------------------------------------------------------------

const pinned = [null, null];

function settingsText(kept) {
  const of = (id, one) => [...byId(id).options].find((option) => option.value === one).textContent;
  const limit = kept.limit === "min_ratio" ? `ratio ≥ ${kept.value}` : `gap ≤ ${Number((kept.value * 100).toFixed(6))} points`;
  const rate = ["number", "budget"].includes(kept.target) ? ` ${Number((kept.rate * 100).toFixed(6))}%` : "";
  const low = kept.lower_is_better ? ", low scores are good" : "";
  return `${of("criterion", kept.criterion)}, ${limit}, cutoff ${kept.cutoff}, ${of("target", kept.target)}${rate}${low}`;
}

function showPins() {
  byId("pins").hidden = pinned.every((one) => one === null);
  const shown = [...pinned.map((one, i) => [`Rule ${"AB"[i]}`, one, i]), ["Now", current, null]].filter(([, one]) => one);
  const head = element("tr");
  head.append(element("td"), ...shown.map(([name]) => element("th", name, { scope: "col" })));
  const body = [["Settings", ({ settings: kept }) => settingsText(kept)]];
  const names = new Set(shown.flatMap(([, one]) => one.figures.map(([name]) => name)));
  for (const name of names) body.push([name, ({ figures }) => (figures.find(([own]) => own === name) ?? ["", "–"])[1]]);
  const rows = body.map(([name, text]) => {
    const row = element("tr");
    row.append(element("th", name, { scope: "row" }), ...shown.map(([, one]) => element("td", text(one))));
    return row;
  });
  const back = element("tr");
  back.append(element("td"));
  for (const [name, one, i] of shown) {
    const cell = element("td");
    if (i !== null) {
      const use = element("button", `Use ${name.toLowerCase().replace(/[ab]$/, (letter) => letter.toUpperCase())} again`, { type: "button" });
      use.addEventListener("click", () => { restore(one.settings); move(); });
      cell.append(use);
    }
    back.append(cell);
  }
  const table = byId("pinned");
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows, back);
}

for (const i of [0, 1]) {
  byId(`pin-${i}`).addEventListener("click", () => {
    pinned[i] = current;
    showPins();
    byId("status").textContent = `Pinned as rule ${"AB"[i]}.`;
  });
}

// Events ------------------------------------------------------------------------------------------

byId("columns").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter ?? event.target.querySelector("button.main");
  byId("columns-problem").textContent = "";
  byId("problem").textContent = "";
  byId("work").hidden = true;
  button.setAttribute("aria-busy", "true");
  button.textContent = "Reading…";
  columns = chosenColumns();
  pinned.fill(null);
  drawn = null;
  charts?.close();
  charts = null;
  byId("cutoff").value = "";
  byId("criterion").value = "parity";
  byId("target").value = "";
  byId("rate-field").hidden = true;
  document.querySelector("input[name=limit][value=max_gap]").checked = true;
  setDial("limit", 2);
  for (const option of byId("criterion").options) option.disabled = option.value !== "parity" && !columns.label;
  for (const option of byId("target").options) {
    option.disabled = ["accuracy", "balanced_accuracy", "base_rate"].includes(option.value) && !columns.label;
  }
  await move(true);
  button.removeAttribute("aria-busy");
  button.textContent = byId("work").hidden ? "Read the rows" : "Read again";
  if (!byId("work").hidden) byId("h-audit").focus();
});

for (const id of ["limit", "cutoff", "rate"]) {
  byId(id).addEventListener("input", () => {
    if (byId(id).value !== "") byId(`${id}-slider`).value = byId(id).value;
    move();
  });
  byId(`${id}-slider`).addEventListener("input", () => {
    byId(id).value = byId(`${id}-slider`).value;
    move();
  });
}
for (const radio of document.querySelectorAll("input[name=limit]")) {
  radio.addEventListener("change", () => {
    fitLimit();
    setDial("limit", isRatio() ? 0.8 : 2);
    move();
  });
}
byId("criterion").addEventListener("change", () => move());
byId("target").addEventListener("change", () => {
  const target = value("target");
  byId("rate-field").hidden = !["number", "budget"].includes(target);
  byId("rate-name").textContent = target === "budget" ? "Share of everybody" : "Rate";
  move();
});
byId("direction").addEventListener("change", () => { if (!byId("work").hidden) move(); });
byId("decision").addEventListener("change", () => { if (!byId("work").hidden) move(); });
byId("label").addEventListener("change", () => { byId("positive-field").hidden = value("label") === ""; });
byId("columns").addEventListener("input", () => {
  if (byId("work").hidden) return;
  const isRead = JSON.stringify(chosenColumns()) === JSON.stringify(columns);
  byId("columns-problem").textContent = isRead ? "" : "Everything below still shows the columns that were read before. Read again.";
});
byId("settings").addEventListener("submit", (event) => event.preventDefault());
byId("positive-field").hidden = value("label") === "";

byId("save").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button.main");
  if (button.getAttribute("aria-busy")) return;
  const [problem, saved] = [byId("save-problem"), byId("saved")];
  button.setAttribute("aria-busy", "true");
  problem.textContent = "";
  saved.textContent = "Saving: the commands are running…";
  try {
    await asking;
    if (byId("problem").textContent || byId("columns-problem").textContent) {
      throw new Error("Nothing was saved: what you chose above is not what the page shows. See the message there.");
    }
    const found = await post("save", {
      columns, settings: current.settings, decision: value("decision"), owner: value("owner"),
    });
    const files = element("ul");
    files.append(...found.files.map((name) => { const item = element("li"); item.append(element("code", name)); return item; }));
    const commands = element("pre");
    commands.append(element("code", found.commands.join("\n")));
    saved.replaceChildren(
      element("p", `Saved rule ${found.fingerprint.slice(0, 8)}:`), files,
      element("p", "These commands wrote them:"), commands,
      element("p", "Next: make the report on rows that you did not explore, and ask the owner to approve it. Then make decisions with fairramp apply; the commands are in commands.txt."),
    );
  } catch (error) {
    saved.textContent = "";
    problem.textContent = error.message;
  } finally {
    button.removeAttribute("aria-busy");
  }
});
