const LEVELS = 20, LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
// The same saved output may stand twice on a page: take the first copy not yet alive.
const root = [...document.querySelectorAll(`[data-uid="${UID}"]`)].find((r) => !r.dataset.ready);
if (!root) return;

const NAMES = {
  cross: ["Cross-attention", "source words, looked at", "target words, being written"],
  encoder: ["Encoder self-attention", "source words, looked at", "source words, looking"],
  decoder: ["Decoder self-attention", "words already written, looked at", "target words, being written"],
};
const SIDES = { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "read"] };
const state = { ...DATA.start };
const app = root.querySelector(".app");

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  return node;
}
const show = (token) => spell(/^\s+$/.test(token) ? token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "␣") : token);
const lang = (token) => (/[\u2e80-\u9fff\uf900-\ufaff]/.test(token) ? { lang: "zh-Hans" } : {});

// Without a Chinese font every character is the same box: then pinyin stands in for it, and where
// there is none, the number of the character.
const hasChinese = (() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!pen) return true;
  pen.font = `20px ${getComputedStyle(root).fontFamily}`;
  const [one, other] = ["猫", "坐"].map((character) => {
    pen.clearRect(0, 0, 40, 40);
    pen.fillText(character, 5, 28);
    return pen.getImageData(0, 0, 40, 40).data.join();
  });
  return one !== other;
})();
const spell = (text) => (hasChinese ? text
  : text.replace(/[\u2e80-\u9fff\uf900-\ufaff]/g, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase()}`));

// ---- data -------------------------------------------------------------------------------------
const example = () => DATA.examples[state.sentence];
const map = () => example().maps[state.kind];
function words(side) {
  const e = example(), sounds = { target: e.pinyin, read: e.read_pinyin }[side];
  return e[side].map((token, i) => {
    const pinyin = sounds && sounds[i] !== token ? sounds[i] : "";
    return hasChinese || !pinyin ? { token, pinyin } : { token: pinyin, pinyin: "" };
  });
}
function unpack(m) {
  if (m.values) return m.values;
  m.values = new Float32Array(m.weights.length / 2);
  for (let i = 0; i < m.values.length; i++)
    m.values[i] = (LETTERS.indexOf(m.weights[2 * i]) * 64 + LETTERS.indexOf(m.weights[2 * i + 1])) / 1000;
  return m.values;
}
function weight(m, layer, head, q, k) {
  const [, H, T, S] = m.shape, at = (h) => unpack(m)[((layer * H + h) * T + q) * S + k];
  if (head !== "mean") return at(head);
  let sum = 0;
  for (let h = 0; h < H; h++) sum += at(h);
  return sum / H;
}
const level = (w) => "c" + Math.round(w * LEVELS);
const hidden = (q, k) => map().causal && k > q;
const isGold = (q, k) => state.kind === "cross" && example().gold.some(([s, t]) => s === k && t === q);
const headName = () => (state.head === "mean" ? "mean of heads" : "head " + state.head);

// ---- parts ------------------------------------------------------------------------------------
// A group of radio buttons: one tab stop, arrows move and choose, as screen readers expect.
function group(buttons, columns, choose) {
  buttons.forEach((button, i) => {
    button.type = "button";
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      let next = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : i + step;
      if (Number.isNaN(next) || next === undefined) return;
      event.preventDefault();
      next = Math.max(0, Math.min(buttons.length - 1, next));
      choose(next);
      buttons[next].focus();
    });
  });
}
function check(buttons, chosen) {
  buttons.forEach((button, i) => {
    button.setAttribute("aria-checked", i === chosen);
    button.tabIndex = i === chosen ? 0 : -1;
  });
}
const field = (name, node) => el("div", { class: "field" }, el("span", { class: "name" }, name), node);
const radios = (name, buttons) => el("div", { class: "group", role: "radiogroup", "aria-label": name }, ...buttons);

const select = el("select", { class: "sentence-select", "aria-label": "sentence" });
DATA.examples.forEach((e, i) => {
  const plain = (tokens) => tokens.filter((t) => !/^<.*>$/.test(t)).join(" ");
  select.append(el("option", { value: i }, spell(`${plain(e.source)}  →  ${plain(hasChinese ? e.target : e.pinyin)}`)));
});
const kindButtons = DATA.kinds.map((kind) => el("button", { class: "kind-button", "data-kind": kind }, NAMES[kind][0]));
const layerBox = el("span"), headBox = el("span");
const stage = el("div", { class: "stage" });
const reading = el("p", { class: "reading", "aria-live": "polite" });
const mapBox = el("div", { class: "panel map-panel" }), thumbBox = el("div", { class: "panel heads-panel" });
const ramp = el("i", { class: "ramp", "aria-hidden": "true" });
for (let i = 0; i <= LEVELS; i++) ramp.append(el("i", { class: "c" + i }));
const goldKey = el("span", {}, el("i", { class: "swatch gold" }), "gold link");
const hiddenKey = el("span", {}, el("i", { class: "swatch hidden-key" }), "may not look: not yet written");

app.append(
  el("div", { class: "title" }, root.dataset.title),
  el("div", { class: "bar" }, field("Sentence", select)),
  el("div", { class: "bar" }, radios("kind of attention", kindButtons), field("Layer", layerBox), field("Head", headBox)),
  el("div", { class: "tinytf-body" }, stage, reading, mapBox, thumbBox),
  el("div", { class: "legend" }, el("span", {}, "0", ramp, "1  attention weight"), goldKey, hiddenKey,
    el("span", {}, "Point at a word that looks, or Tab to it and use ← →")),
);

let layerButtons, headButtons, queries, keys, ribbons, cells, rowNames, thumbs;

function tokenNodes(tag, name, list, below) {
  return list.map(({ token, pinyin }, i) => el(tag, { class: `token ${name}-token`, ["data-" + name]: i },
    el("span", lang(token), show(token)), ...(below || pinyin ? [el("small", {}, pinyin)] : [])));
}

// Everything that depends on the sentence and the kind of attention.
function build() {
  const m = map(), [L, H, T, S] = m.shape, [asking, asked] = SIDES[state.kind];
  state.layer = Math.min(state.layer, L - 1);
  if (state.head !== "mean") state.head = Math.min(state.head, H - 1);
  state.query = Math.min(state.query, T - 1);
  const heads = [...Array(H).keys(), "mean"];

  layerButtons = [...Array(L).keys()].map((l) => el("button", { class: "layer-button", "data-layer": l }, l));
  headButtons = heads.map((h) => el("button", { class: "head-button", "data-head": h }, h));
  group(layerButtons, 1, (i) => go({ layer: i }));
  group(headButtons, 1, (i) => go({ head: heads[i] }));
  layerBox.replaceChildren(radios("layer", layerButtons));
  headBox.replaceChildren(radios("head", headButtons));

  const askingWords = words(asking), askedWords = words(asked);
  queries = tokenNodes("button", "query", askingWords);
  keys = tokenNodes("div", "key", askedWords);
  keys.forEach((node) => node.prepend(el("small", { class: "number" })));
  group(queries, 1, (i) => go({ query: i }));
  queries.forEach((node, i) => {
    node.addEventListener("pointermove", (event) => event.pointerType === "mouse" && go({ query: i }));
    node.addEventListener("focus", () => go({ query: i }));
  });
  ribbons = svg("svg", { class: "ribbons", "aria-hidden": "true" });
  const [, above, beneath] = NAMES[state.kind];
  stage.replaceChildren(el("div", { class: "inner" }, ribbons,
    el("p", { class: "row-name" }, above), el("div", { class: "tinytf-row" }, ...keys), el("div", { class: "gap" }),
    el("div", { class: "tinytf-row", role: "radiogroup", "aria-label": beneath }, ...queries),
    el("p", { class: "row-name" }, beneath)));

  // A cell's size where there is room beside the words, and where there is less.
  const beside = Math.max(15, Math.min(38, Math.floor(410 / S), Math.floor(410 / T)));
  const under = Math.max(15, Math.min(22, Math.floor(190 / T)));
  const grid = el("div", { class: "map", role: "img",
    style: `--beside:${beside}px;--under:${under}px;grid-template-columns:max-content repeat(${S},var(--cell))` }, el("span"));
  askedWords.forEach(({ token, pinyin }) => grid.append(el("span", { class: "across", ...lang(token) }, [show(token), pinyin].filter(Boolean).join(" "))));
  cells = []; rowNames = [];
  askingWords.forEach(({ token, pinyin }, q) => {
    const name = el("span", { class: "down", ...lang(token) }, [show(token), pinyin].filter(Boolean).join(" "));
    name.addEventListener("pointermove", () => go({ query: q }));
    rowNames.push(name); grid.append(name);
    cells.push(askedWords.map((_, k) => {
      const cell = el("span", { "data-query": q, "data-key": k }, el("span"));
      cell.addEventListener("pointermove", () => go({ query: q }));
      grid.append(cell);
      return cell;
    }));
  });
  mapBox.replaceChildren(el("p", { class: "panel-name" }), grid);

  const board = el("div", { class: "heads", role: "radiogroup", "aria-label": "all heads of all layers",
    style: `--thumb:${H > 5 ? 44 : 60}px;grid-template-columns:max-content repeat(${H + 1},max-content)` });
  ["head", ...heads].forEach((h) => board.append(el("span", { "aria-hidden": "true" }, h)));
  thumbs = [];
  for (let l = 0; l < L; l++) {
    board.append(el("span", { "aria-hidden": "true" }, "layer " + l));
    for (const h of heads) {
      const picture = svg("svg", { viewBox: `0 0 ${S} ${T}`, preserveAspectRatio: "none", "shape-rendering": "crispEdges", "aria-hidden": "true" });
      picture.append(svg("rect", { width: S, height: T, class: "c0" }));
      for (let q = 0; q < T; q++) for (let k = 0; k < S; k++) {
        const c = level(weight(m, l, h, q, k));
        if (c !== "c0") picture.append(svg("rect", { x: k, y: q, width: 1.02, height: 1.02, class: c }));
      }
      const thumb = el("button", { class: "thumb", "data-layer": l, "data-head": h, "aria-label": `layer ${l}, ${h === "mean" ? "mean of heads" : "head " + h}` }, picture);
      thumbs.push(thumb); board.append(thumb);
    }
  }
  group(thumbs, H + 1, (i) => go({ layer: Math.floor(i / (H + 1)), head: heads[i % (H + 1)] }));
  thumbBox.replaceChildren(el("p", { class: "panel-name" }, `All heads of ${NAMES[state.kind][0].toLowerCase()}`), board);
  goldKey.style.display = state.kind === "cross" && example().gold.length ? "" : "none";
  hiddenKey.style.display = m.causal ? "" : "none";
  fit();
  paint();
}

// Everything that depends on the layer, the head and the word; keeps nodes, so focus stays put.
function paint() {
  const m = map(), [, H, T, S] = m.shape, { layer, head, query } = state;
  for (const name of ["sentence", "kind", "layer", "head", "query"]) root.dataset[name] = state[name];
  select.value = state.sentence;
  check(kindButtons, DATA.kinds.indexOf(state.kind));
  check(layerButtons, layer);
  check(headButtons, head === "mean" ? H : head);
  check(queries, query);
  check(thumbs, layer * (H + 1) + (head === "mean" ? H : head));
  keys.forEach((node, k) => {
    const w = weight(m, layer, head, query, k), masked = hidden(query, k);
    node.className = `token key-token ${masked ? "hidden-key" : level(w)}${isGold(query, k) ? " gold" : ""}`;
    node.dataset.weight = w.toFixed(3);
    node.querySelector(".number").textContent = masked ? "–" : w.toFixed(2);
  });
  cells.forEach((row, q) => row.forEach((cell, k) => {
    const w = weight(m, layer, head, q, k), masked = hidden(q, k);
    cell.className = `cell ${masked ? "hidden-key" : level(w)}${isGold(q, k) ? " gold" : ""}`;
    cell.dataset.weight = w.toFixed(3);
    cell.firstChild.textContent = w >= 0.05 ? w.toFixed(2) : "";
  }));
  rowNames.forEach((name, q) => name.classList.toggle("on", q === query));
  const where = `Layer ${layer}, ${headName()}`;
  mapBox.firstChild.textContent = where;
  mapBox.lastChild.setAttribute("aria-label", `${NAMES[state.kind][0]}, ${where}: ${T} by ${S} map of weights`);
  read();
  draw();
}

// The picture in words, which is also what a screen reader says.
function read() {
  const m = map(), { layer, head, query } = state, S = m.shape[3], [asking, asked] = SIDES[state.kind];
  const named = ({ token, pinyin }) => show(token) + (pinyin ? ` (${pinyin})` : "");
  const list = words(asked).map((word, k) => [weight(m, layer, head, query, k), named(word)])
    .filter(([w]) => w >= 0.05).sort((a, b) => b[0] - a[0]).slice(0, 4);
  const verb = asking === "source" ? "At " : "Writing ";
  const looked = list.map(([w, name]) => `${name} ${w.toFixed(2)}`).join(",  ");
  reading.replaceChildren(verb, el("b", {}, named(words(asking)[query])), `, layer ${layer}, ${headName()} looks at  `,
    el("b", {}, looked || `all ${S} words alike`));
}

// Smaller words before a second line.
function fit() {
  const inner = stage.firstChild, { shape: [, , T, S] } = map();
  inner.classList.remove("long");
  const wraps = [keys, queries].some((row) => row.at(-1).offsetTop > row[0].offsetTop + row[0].offsetHeight / 2);
  inner.classList.toggle("long", wraps || Math.max(S, T) > 15);
}

function draw() {
  const box = ribbons.getBoundingClientRect(), m = map(), { layer, head, query } = state;
  ribbons.replaceChildren();
  if (!box.width) return;
  const from = queries[query].getBoundingClientRect();
  const x0 = from.left + from.width / 2 - box.left, y0 = from.top - box.top;
  keys.forEach((node, k) => {
    const w = weight(m, layer, head, query, k), to = node.getBoundingClientRect(), gold = isGold(query, k);
    if (w < 0.02 && !gold) return;
    const x1 = to.left + to.width / 2 - box.left, y1 = to.bottom - box.top, bend = (y0 - y1) * 0.55;
    const d = `M${x0},${y0}C${x0},${y0 - bend} ${x1},${y1 + bend} ${x1},${y1}`;
    if (w >= 0.02) ribbons.append(svg("path", { d, "stroke-width": 1 + 15 * w, "stroke-opacity": 0.25 + 0.6 * w }));
    if (gold) ribbons.append(svg("path", { d, class: "gold" }));
  });
}

function go(change) {
  if (Object.entries(change).every(([name, value]) => state[name] === value)) return;
  Object.assign(state, change);
  if ("sentence" in change || "kind" in change) build(); else paint();
}

group(kindButtons, 1, (i) => go({ kind: DATA.kinds[i] }));
select.addEventListener("change", () => go({ sentence: Number(select.value), query: 0 }));
// Otherwise the notebook takes the arrow keys for itself.
root.addEventListener("keydown", (event) => event.stopPropagation());
root.dataset.ready = "1";
build();
if (window.ResizeObserver) new ResizeObserver(() => (fit(), draw())).observe(stage);
