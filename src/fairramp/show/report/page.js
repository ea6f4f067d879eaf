// Computes no result: shows the numbers that Python computed for the slider's position.
const content = JSON.parse(document.getElementById("content").textContent);
const slider = document.getElementById("limit");
const back = document.getElementById("back");
const bar = document.querySelector(".bar");
const approval = document.getElementById("approval");
const said = [...document.querySelectorAll("[data-say]")];
const labeled = [...document.querySelectorAll("[data-label]")];
const whatIf = [...document.querySelectorAll("[data-what-if]")];
const rows = {};
let charts;
for (const key of Object.keys(content.tables)) rows[key] = [...document.querySelectorAll(`#table-${key} tbody tr`)];

// Formats like `percent` in core/words.py: a share above 0, but for rounding, never reads as 0.
function percent(x) {
  if (Math.abs(x * 100) <= 1e-9) return "0.0%";
  return x > 0 && x * 100 < 0.05 ? "<0.1%" : `${(x * 100).toFixed(1)}%`;
}

// Formats like `people` in show/words.py.
function people(n) {
  if (!(n > 1e-9)) return "";
  return n < 0.5 ? "<1" : n.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
}

const score = (x) => (typeof x === "string" ? x : x.toFixed(content.decimals));
const share = (x) => (x === null ? "–" : percent(x));
const forms = {
  share: percent,
  score,
  rate: (rate, low, high) => `${share(rate)} [${share(low)}, ${share(high)}]`,
  ends: (start, end) => `${score(start)} to ${score(end)}`,
  people: (n, part) => (people(n) ? `${people(n)} (${percent(part)})` : "0"),
};

function cell(td, column, values, i) {
  const parts = values.map((v) => v[i]);
  const empty = parts[0] === null;
  td.textContent = empty ? "–" : forms[column.form](...parts);
  td.title = empty ? "" : parts.filter((part) => part !== null).map(String).join(" – ");
}

function show(at) {
  const outcome = content.outcomes[at];
  const isWhatIf = at !== content.own;
  document.documentElement.toggleAttribute("data-what-if", isWhatIf);
  document.getElementById("what-if-print").media = isWhatIf ? "print" : "not all";
  bar.dataset.verdict = isWhatIf ? "what-if" : content.verdict;
  approval.hidden = isWhatIf;
  for (const element of whatIf) element.hidden = !isWhatIf;
  for (const element of said) {
    const [text, digits] = outcome.say[element.dataset.say];
    if (element.textContent !== text) element.textContent = text;
    if (element.hasAttribute("title")) element.title = digits;
  }
  for (const element of labeled) element.setAttribute("aria-label", outcome.say[element.dataset.label][0]);
  slider?.setAttribute("aria-valuetext", outcome.say.limit[0]);
  if (back) back.disabled = !isWhatIf;
  for (const [key, columns] of Object.entries(content.tables)) {
    columns.forEach((column, j) => {
      if (column.moves) rows[key].forEach((row, i) => cell(row.cells[j + 1], column, outcome.tables[key][j], i));
    });
  }
  for (const name of Object.keys(content.charts)) charts?.set(name, { at });
}

// Rules that mix thresholds have no slider, and those by group probabilities no answers to one person.
const position = () => (slider ? Number(slider.value) : content.own);
slider?.addEventListener("input", () => show(position()));
back?.addEventListener("click", () => {
  slider.value = String(content.own);
  show(content.own);
  slider.focus();
});
if (slider) slider.value = String(content.own);
show(content.own);

if (content.answers.forms.length) wireAnswers(content.answers);

const copy = document.getElementById("copy");
copy?.addEventListener("click", async () => {
  const command = document.getElementById("command");
  try {
    await navigator.clipboard.writeText(command.textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  } catch {
    window.getSelection().selectAllChildren(command);
  }
});

charts = openCharts(content.charts, () => show(position()));
charts.ready.then(() => { document.documentElement.dataset.ready = "yes"; });
