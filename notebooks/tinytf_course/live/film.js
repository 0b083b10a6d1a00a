// A film of attention in six steps, from words to the mixture, with one head's real numbers.
(() => {
"use strict";
const { el, button, allow, radios, rove, redraw, range, dot, row, softmax } = tinytf;
const SENTENCES = ["the cat sat on the mat", "the dog saw the cat", "the old woman read a new book"];
const LAYER = "encoder.layers.0";
const OPENING = { head: 2, word: 2 };
const STEPS = tinytf.scenes.map(({ name }) => name);
const two = (number) => number.toFixed(2).replace("-", "−");
const film = { SENTENCES, LAYER, OPENING, compute, pause: 4000 }; // milliseconds for each step

// All numbers of one head for one sentence: words, ids, x, normed, q, k, v, scores, weights, output.
function compute(model, sentence, head) {
  const ids = model.read(sentence), name = `${LAYER}.self_attention`;
  const { d_model: C, num_heads: H } = model.config, D = C / H;
  const embedding = model.tensors["src_embedding.weight"];
  const x = model.embedSide("src", ids, range(ids.length));
  const normed = model.norm(`${LAYER}.residual_1.norm`, x);
  const part = (letter) => {
    const all = model.linear(`${name}.w_${letter}`, normed);
    return range(ids.length).map((t) => row(all, t).subarray(head * D, (head + 1) * D));
  };
  const [q, k, v] = ["q", "k", "v"].map(part);
  const products = q.map((query) => k.map((key) => dot(query, 0, key, 0, D)));
  const scores = products.map((line) => line.map((product) => product / Math.sqrt(D)));
  const weights = scores.map((line) => softmax(line));
  const outputs = weights.map((line) => range(D).map((i) => line.reduce((sum, weight, s) => sum + weight * v[s][i], 0)));
  const words = ids.map((id) => model.source.tokens[id]);
  return { model, words, ids, x, normed, embedding, q, k, v, products, scores, weights, outputs, C, D, head };
}

function start(root, app, file) {
  const model = new tinytf.Translator(file, tinytf.phrasebook);
  const state = { step: 0, sentence: 0, ...OPENING }, still = matchMedia("print");
  let numbers = null, timer = 0, room = 0;
  film.model = model; // for tests

  const steps = el("span"), heads = el("span"), words = el("span");
  const choice = el("select", { "aria-label": "sentence", "data-key": "sentence" },
    ...SENTENCES.map((sentence, i) => el("option", { value: i }, sentence)));
  const play = button("play", { class: "play", "data-key": "play" }, () => (timer ? pause() : run()));
  const back = button("back", { "data-key": "back" }, () => { pause(); go(state.step - 1); });
  const next = button("next", { "data-key": "next" }, () => { pause(); go(state.step + 1); });
  const caption = el("p", { class: "tinytf-caption", role: "status" }), scene = el("div", { class: "scene" });
  const formula = el("p", { class: "formula", "aria-live": "polite" });
  app.append(
    el("div", { class: "bar" }, el("span", { class: "group" }, play, back, next), steps),
    el("div", { class: "bar" }, el("label", { class: "field" }, el("span", { class: "name" }, "Sentence"), choice),
      el("span", { class: "field" }, el("span", { class: "name" }, "Head"), heads),
      el("span", { class: "field" }, el("span", { class: "name" }, "The word that looks"), words)),
    caption, scene, formula);
  choice.addEventListener("change", () => { state.sentence = Number(choice.value); state.word = OPENING.word; update(); });

  // How many numbers of a vector fit beside a word.
  const columns = () => (scene.clientWidth < 590 ? 4 : scene.clientWidth < 830 ? 6 : 8);

  function run() {
    if (state.step === STEPS.length - 1) go(0);
    play.textContent = "pause";
    timer = setInterval(() => {
      go(state.step + 1);
      if (state.step === STEPS.length - 1) pause();
    }, film.pause);
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "play";
  }
  function go(step) {
    state.step = Math.max(0, Math.min(STEPS.length - 1, step));
    redraw(root, draw);
  }
  function update() {
    numbers = compute(model, SENTENCES[state.sentence], state.head);
    redraw(root, draw);
  }

  function draw() {
    const key = (name) => (i) => ({ "data-key": `${name} ${i}` });
    allow(back, state.step > 0);
    allow(next, state.step < STEPS.length - 1);
    root.dataset.step = state.step;
    steps.replaceChildren(radios("step", STEPS.map((name, i) => `${i + 1} ${name}`), state.step,
      (i) => { pause(); go(i); }, key("step")));
    heads.replaceChildren(radios("head", range(model.config.num_heads).map(String), state.head,
      (i) => { state.head = i; update(); }, key("head")));
    words.replaceChildren(radios("the word that looks", numbers.words, state.word,
      (i) => { state.word = i; go(state.step); }, key("word")));
    const { scene: make } = tinytf.scenes[state.step];
    room = columns();
    const { caption: told, head, rows, foot } = make(numbers, state.word, room);
    caption.textContent = told;
    formula.textContent = "Point at or tap a number to see how it was computed.";
    const line = (cells, cls) => el("tr", { class: cls }, ...cells.map(cellNode));
    const body = rows.map((cells, i) => line(cells, i === state.word ? "looks" : ""));
    if (foot) body.push(line(foot, "foot"));
    scene.replaceChildren(el("table", { role: "grid", "aria-label": `step ${state.step + 1}: ${STEPS[state.step]}` },
      el("thead", {}, el("tr", {}, ...head.map(({ name, span = 1 }) => el("th", { scope: "col", colspan: span }, name)))),
      el("tbody", {}, ...body)));
    const cells = [...scene.querySelectorAll("td[data-formula]")];
    rove(cells, Math.max(1, Math.round(cells.length / Math.max(1, scene.querySelectorAll("tbody tr").length))));
  }

  // A number with its formula; its colour says its size, blue below and orange above zero.
  function cellNode(cell) {
    if (typeof cell === "string") return el("th", { scope: "row" }, cell);
    const { value, formula: how, show = two, weight, signed } = cell;
    const strength = Math.min(0.75, Math.abs(value) / signed), colour = value < 0 ? "low" : "high";
    const node = el("td", {
      "data-formula": how, "data-key": `cell ${how}`, "aria-label": how,
      class: weight === undefined ? "number" : `number ${tinytf.level(weight)}`,
      style: signed ? `--tint: rgba(var(--${colour}), ${strength})` : undefined,
    }, show(value));
    const tell = () => { formula.textContent = how; };
    node.addEventListener("pointerenter", tell);
    node.addEventListener("click", tell);
    node.addEventListener("focus", () => { pause(); tell(); });
    return node;
  }

  still.addEventListener?.("change", pause);
  if (window.ResizeObserver) new ResizeObserver(() => room !== columns() && redraw(root, draw)).observe(root);
  update();
}

tinytf.film = film;
tinytf.mount("film", "translator", {}, start);
})();
