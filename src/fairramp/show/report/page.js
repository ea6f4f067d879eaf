// Computes nothing: shows the numbers that Python computed for the slider's position.
const content = JSON.parse(document.getElementById("content").textContent);
const slider = document.getElementById("limit");
const back = document.getElementById("back");
const said = [...document.querySelectorAll("[data-say]")];
const labeled = [...document.querySelectorAll("[data-label]")];
const rows = [...document.querySelectorAll("#rule tbody tr")];
const views = [];

// Formats like `percent` in core/words.py: a share above 0, but for rounding, never reads as 0.
function percent(x) {
  if (Math.abs(x * 100) <= 1e-9) return "0.0%";
  return x > 0 && x * 100 < 0.05 ? "<0.1%" : `${(x * 100).toFixed(1)}%`;
}

const forms = {
  share: (x) => percent(x),
  range: (low, high) => `${(100 * low).toFixed(1)}–${percent(high)}`,
  score: (x) => (typeof x === "string" ? x : x.toFixed(content.decimals)),
};

function cell(td, column, values, i) {
  if (values[0][i] === null) {
    td.textContent = "–";
    td.title = "";
    return;
  }
  const parts = values.map((v) => v[i]);
  td.textContent = forms[column.form](...parts);
  td.title = parts.map(String).join(" – ");
}

function show(at) {
  const outcome = content.outcomes[at];
  for (const element of said) {
    const [text, digits] = outcome.say[element.dataset.say];
    if (element.textContent !== text) element.textContent = text;
    if (element.hasAttribute("title")) element.title = digits;
  }
  for (const element of labeled) element.setAttribute("aria-label", outcome.say[element.dataset.label][0]);
  slider.setAttribute("aria-valuetext", outcome.say.limit[0]);
  back.disabled = at === content.own;
  content.columns.forEach((column, j) => {
    if (!column.moves) return;
    rows.forEach((row, i) => cell(row.cells[j + 1], column, outcome.columns[j], i));
  });
  for (const view of views) view.signal("at", at).runAsync();
}

const position = () => Number(slider.value);
slider.addEventListener("input", () => show(position()));
back.addEventListener("click", () => {
  slider.value = String(content.own);
  show(content.own);
  slider.focus();
});
slider.value = String(content.own);
show(content.own);

const options = {
  ast: true,
  actions: false,
  renderer: "svg",
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
};
Promise.all(Object.entries(content.charts).map(async ([name, spec]) => {
  const { view } = await vegaEmbed(`#chart-${name}`, spec, options);
  views.push(view);
})).then(() => {
  show(position());
  document.documentElement.dataset.ready = "yes";
});
