// Answers one person: the arithmetic of core/ramps.py and core/scales.py, and the templates of show/answers.py.
const { answer, wireAnswers } = (() => {
  const ANY = [-Infinity, Infinity];
  const RANGES = { probability: [0, 1], percent: [0, 100], signed: [-1, 1], logit: ANY, real: ANY };
  const RELATIONS = {
    "above": (a, b) => a > b,
    "at or above": (a, b) => a >= b,
    "below": (a, b) => a < b,
    "at or below": (a, b) => a <= b,
    "between": (a, b) => a >= b,
    "and": (a, b) => a <= b,
  };

  function position(scale, score) {
    if (scale === "logit") return 1 / (1 + Math.exp(-score));
    if (scale === "real") return Math.abs(score) > 0.5 ? Math.sign(score) - 0.25 / score : score;
    return scale === "percent" ? score / 100 : score;
  }

  function chance(form, x, before) {
    if (form.kind === "own") return before ? 1 : 0;
    if (form.kind === "constant") return form.tie;
    if (form.kind === "step") return x > form.foot ? 1 : x === form.foot ? form.tie : 0;
    return Math.min(Math.max((x - form.foot) / form.width, 0), 1);
  }

  function chanceText(probability) {
    const text = (100 * probability).toFixed(1);
    return `${{ "0.0": "<0.1", "100.0": ">99.9" }[text] ?? text}%`;
  }

  function why(form, scale, score, probability, before) {
    const template = probability === 1 ? form.yes : probability === 0 ? form.no : form.random;
    const logit = scale === "logit";
    const full = String(logit ? position(scale, score) : score);
    const own = [logit ? position(scale, score).toFixed(form.decimals) : full, full];
    const bounds = template.filter((part) => typeof part !== "string" && part[0] in RELATIONS);
    const level = [0, 1].find((i) => bounds.every(([kind, ...texts]) =>
      i < texts.length && RELATIONS[kind](Number(own[i]), Number(texts[i]))));
    return template.map((part) => {
      if (typeof part === "string") return part;
      const [kind, ...texts] = part;
      if (kind === "score") return `${score}${logit ? ` (probability ${own[level ?? 1]})` : ""}`;
      if (kind === "chance") return chanceText(probability);
      if (kind === "before") return texts[before ? 1 : 0];
      if (level !== undefined) return `${kind} ${texts[level]}`;
      return `${kind === "above" || kind === "below" ? "at or " : ""}${kind} ${full}`;
    }).join("");
  }

  // A number as people write it, perhaps with a decimal comma; NaN if it is none.
  function parsed(text) {
    const plain = text.trim().replace("\u2212", "-").replace(",", ".");
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) + 0 : NaN;
  }

  // The probability is null if there is no valid score.
  function answer(form, scale, higherIsBetter, cutoff, text) {
    if (text.trim() === "") return { sentences: "", probability: null };
    const score = parsed(text);
    const [low, high] = RANGES[scale];
    if (!Number.isFinite(score) || score < low || score > high) {
      const range = low === -Infinity ? "a number, such as 0.41" : `a number from ${low} to ${high}`;
      return { sentences: `The score must be ${range}, not \u2068${text.trim()}\u2069.`, probability: null };
    }
    const turned = (x) => (higherIsBetter ? x : 0 - x);
    const compared = (x) => turned(RANGES[scale] === ANY ? x : position(scale, x));
    const before = compared(score) >= compared(cutoff);
    const probability = chance(form, turned(position(scale, score)), before);
    return { sentences: why(form, scale, score, probability, before), probability };
  }

  // Connects the fields of answer.html to the payload's `answers`.
  function wireAnswers({ forms, scale, higher_is_better: higherIsBetter, cutoff }) {
    const group = document.getElementById("answer-group");
    const score = document.getElementById("answer-score");
    const output = document.getElementById("answer");
    const show = () => {
      const found = answer(forms[Number(group.value)], scale, higherIsBetter, cutoff, score.value);
      score.setAttribute("aria-invalid", String(found.probability === null && score.value.trim() !== ""));
      output.textContent = found.sentences;
    };
    group.addEventListener("change", show);
    score.addEventListener("input", show);
    show();
  }

  return { answer, wireAnswers };
})();
