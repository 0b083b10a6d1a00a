// Two translations compared, in words; and the ribbons from a word to what a head looks at.
(() => {
"use strict";
const { svg, said } = tinytf;

// The words of both in one row, by their longest common subsequence: { word, was, is }, where `was`
// is the place of the word before and `is` the place now, each undefined where it is missing.
function compare(before, now) {
  const length = Array.from({ length: before.length + 1 }, () => new Array(now.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      length[i][j] = before[i] === now[j] ? 1 + length[i + 1][j + 1] : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const row = [];
  for (let i = 0, j = 0; i < before.length || j < now.length; ) {
    if (i < before.length && j < now.length && before[i] === now[j]) row.push({ word: now[j], was: i++, is: j++ });
    else if (j === now.length || (i < before.length && length[i + 1][j] >= length[i][j + 1])) {
      row.push({ word: before[i], was: i++ });
    } else row.push({ word: now[j], is: j++ });
  }
  return row;
}

// What the changes did, in one or two sentences.
function summary(before, now) {
  const row = compare(before.target, now.target);
  const words = row.filter(({ word }) => word !== "<eos>");
  const lost = words.filter(({ is }) => is === undefined), come = words.filter(({ was }) => was === undefined);
  const kept = row.filter(({ was, is }) => was !== undefined && is !== undefined)
    .map(({ word, was, is }) => ({ word, from: before.probs[was], to: now.probs[is] }))
    .sort((a, b) => Math.abs(b.to - b.from) - Math.abs(a.to - a.from));
  const parts = ["All words stayed the same."];
  if (lost.length + come.length) {
    const isWord = (word) => word !== "<eos>";
    const written = ({ target }) => target.filter(isWord).map(tinytf.shown).join(" ") || "nothing";
    parts[0] = `${lost.length} ${lost.length === 1 ? "word" : "words"} lost, ${come.length} new. ` +
      `Before: ${written(before)}. Now: ${written(now)}.`;
  }
  if (now.target.at(-1) !== "<eos>") parts.push(`Stopped after ${now.target.length} words.`);
  if (kept.length) {
    const { word, from, to } = kept[0], moved = Math.abs(to - from) >= 0.0005;
    const digits = from.toFixed(2) === to.toFixed(2) ? 3 : 2;
    parts.push(moved ? `${said(word)} changed most: ${from.toFixed(digits)} → ${to.toFixed(digits)}.` :
      "No probability changed by 0.0005 or more.");
  }
  return parts.join(" ");
}

// Which word asks and which words it sees, for each kind of attention.
const ASKS = { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "read"] };

function ribbonView(stage, reading) {
  return ({ state, now, sourceNodes, targetNodes, ribbons }) => {
    const [asking, asked] = ASKS[state.kind], { name, head } = state.head;
    const query = state.word[asking], weights = [...now.maps[name][query][head]];
    const off = state.off.has(name) || state.off.has(`${name}.${head}`);
    // What the decoder reads is <bos> and the words before the one it writes.
    const words = asked === "source" ? now.source : ["<bos>", ...now.target];
    const nodes = asked === "source" ? sourceNodes : [null, ...targetNodes];
    const from = (asking === "source" ? sourceNodes : targetNodes)[query];
    const places = asked === "source" ? state.positions : null;
    const word = (asking === "source" ? now.source : now.target)[query];
    describe(reading, { state, off, words, weights, places, word });
    const box = ribbons.getBoundingClientRect();
    ribbons.replaceChildren();
    for (const node of [...sourceNodes, ...targetNodes]) node.style.setProperty("--weight", 0);
    if (!box.width || off) return;
    const middle = (node, edge) => {
      const { left, width, [edge]: y } = node.getBoundingClientRect();
      return [left + width / 2 - box.left, y - box.top];
    };
    weights.forEach((weight, k) => {
      if (!nodes[k]) return;
      nodes[k].style.setProperty("--weight", weight.toFixed(2));
      if (weight < 0.02 || nodes[k] === from) return;
      ribbons.append(svg("path", {
        d: path(asking, asked, middle, from, nodes[k]),
        "stroke-width": 1 + 13 * weight, "stroke-opacity": 0.3 + 0.6 * weight,
      }));
    });
  };
}

// From below to above between the rows, or an arc over (English) or under (Chinese) its own row.
function path(asking, asked, middle, from, to) {
  if (asking === "target" && asked === "source") {
    const [x0, y0] = middle(from, "top"), [x1, y1] = middle(to, "bottom"), bend = (y0 - y1) / 2;
    return `M${x0},${y0}C${x0},${y0 - bend} ${x1},${y1 + bend} ${x1},${y1}`;
  }
  const edge = asking === "source" ? "bottom" : "top", sign = asking === "source" ? 1 : -1;
  const [x0, y0] = middle(from, edge), [x1, y1] = middle(to, edge);
  const height = sign * Math.min(58, 18 + Math.abs(x1 - x0) / 5);
  return `M${x0},${y0}C${x0},${y0 + height} ${x1},${y1 + height} ${x1},${y1}`;
}

function describe(reading, { state, off, words, weights, places, word }) {
  const { name, head } = state.head, [side, , layer, part] = name.split(".");
  const twice = (other) => words.indexOf(other) !== words.lastIndexOf(other);
  const called = (other, k) => `${said(other)}${twice(other) ? ` (${places ? places[k] : k})` : ""}`;
  const seen = weights.map((weight, k) => [weight, called(words[k], k)]).filter(([weight]) => weight >= 0.05)
    .sort((a, b) => b[0] - a[0]).slice(0, 4);
  const list = seen.map(([weight, other]) => `${other} ${weight.toFixed(2)}`).join(", ");
  const where = `${side} layer ${layer}, ${part.replace("_", "-")}, head ${head}`;
  const meaning = tinytf.phrasebook.english[word] ? ` “${tinytf.phrasebook.english[word]}”` : "";
  const looks = off ? "is off and looks at nothing" : `looks at ${list || "all words alike"}`;
  reading.replaceChildren(tinytf.el("span", { class: "where" }, where), ": ",
    side === "encoder" ? "at " : "writing ", tinytf.el("b", {}, said(word)), `${meaning}, it ${looks}.`);
}

Object.assign(tinytf, { compare, summary, ribbonView });
})();
