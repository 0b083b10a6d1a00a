// The translator in a page: type a sentence, see where each head looks, and take the model apart.
(() => {
"use strict";
const { el, svg, button, toggle, field, rove, redraw, slider, spelled, asRead, SentenceError } = tinytf;

const NEW = (sentence) => ({
  sentence, off: new Set(), hidden: new Set(), positions: null, temperature: 1, swap: null, about: "",
  head: { name: "decoder.layers.1.cross_attention", head: 1 }, kind: "cross", word: { source: 0, target: 0 },
});

function start(root, app, file) {
  const model = new tinytf.Translator(file, tinytf.phrasebook);
  let state = NEW(tinytf.examples[0].sentence), plain = null, now = null, waiting = 0; // timer of the text

  // ---- what stays while the sentence changes ------------------------------------------------------
  const input = el("input", {
    type: "text", class: "sentence", value: state.sentence, spellcheck: "false", autocapitalize: "none",
    autocomplete: "off", "data-key": "sentence", "aria-label": "English sentence", maxlength: 2000,
  });
  const choice = el("select", { class: "experiment", "aria-label": "experiment", "data-key": "experiment" },
    ...tinytf.examples.map((example, i) => el("option", { value: i }, `${i + 1}. ${example.name}`)));
  const own = el("option", { value: "own" }, "your own sentence");
  const temperature = slider("Attention temperature", {
    min: -2, max: 3, step: 0.5, value: 0, key: "temperature",
    show: (log) => String(Math.round(100 * 2 ** log) / 100), change: (log) => change(() => { state.temperature = 2 ** log; }),
  });
  const readAs = el("p", { class: "tinytf-note read-as", role: "status" });
  const problem = el("div", { class: "problem", role: "alert" }), about = el("p", { class: "about" });
  const stage = el("div", { class: "stage" }), summary = el("p", { class: "summary", role: "status" });
  const reading = el("p", { class: "reading" }), boardBox = el("div", { class: "board-box" });
  temperature.append(el("small", {}, "low: all weight on one word, high: all words alike"));
  const together = "put all words at position 0";
  const one = toggle(together, together, false, { "data-key": "one-position" }, () => change(() => {
    state.positions = atOnePosition() ? null : now.source.map(() => 0);
  }));
  const undo = button("undo all changes", { "data-key": "undo" }, () => change(() => {
    state = { ...NEW(state.sentence), head: state.head, kind: state.kind };
    input.focus();
  }));
  const tools = el("div", { class: "bar tools" }, temperature, one, undo);
  const results = el("div", { class: "results" }, stage, reading, summary, tools, boardBox);
  app.append(
    el("div", { class: "bar" }, field("English", input), field("Try", choice)), readAs, about, problem, results,
    el("p", { class: "tinytf-note" }, "The model runs in this page; nothing is sent anywhere. It was trained on the " +
      "sentences of the course's phrasebook. It also translates other sentences of the same 601 words, but " +
      "often wrongly. Its probabilities rarely exceed 0.9, because it was trained with label smoothing (chapter 14)."),
  );

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => read(input.value), 120);
  });
  app.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || state.swap === null) return;
    state.swap = null;
    redraw(root, draw);
  });
  choice.addEventListener("change", () => begin(tinytf.examples[Number(choice.value)]));

  function begin(example) {
    const { sentence, off = [], hidden = [], positions = null, temperature: T = 1, about: words } = example;
    stopWaiting();
    own.remove();
    choice.value = tinytf.examples.indexOf(example);
    state = { ...NEW(sentence), off: new Set(off), hidden: new Set(hidden), positions, temperature: T, about: words };
    input.value = sentence;
    update();
  }

  function stopWaiting() {
    clearTimeout(waiting);
    waiting = 0;
  }

  // No experiment runs any more.
  function onOwn() {
    choice.prepend(own);
    choice.value = "own";
    Object.assign(state, { about: "", swap: null });
  }

  // A new sentence; parts that are off stay off, and the temperature stays.
  function read(sentence) {
    const { off, temperature, head, kind } = state;
    stopWaiting();
    state = { ...NEW(sentence), off, temperature, head, kind };
    onOwn();
    update();
  }

  // Read what was typed a moment ago. Returns whether the sentence can be read.
  function flush() {
    if (waiting) read(input.value);
    return !results.inert;
  }

  function change(act) {
    if (!flush()) return;
    onOwn();
    act();
    update();
  }

  // ---- compute ------------------------------------------------------------------------------------
  const isChanged = () => state.off.size + state.hidden.size > 0 || state.positions !== null || state.temperature !== 1;

  function update() {
    const sentence = asRead(state.sentence, model.source);
    problem.replaceChildren();
    readAs.textContent = sentence === state.sentence ? "" : `Read as “${sentence}”.`;
    about.textContent = tinytf.withPinyin(state.about);
    try {
      if (plain?.sentence !== sentence) plain = { sentence, ...model.translate(sentence) };
      now = isChanged() ? model.translate(sentence, state) : plain;
    } catch (error) {
      if (!(error instanceof SentenceError)) throw error;
      results.inert = true;
      delete root.dataset.output;
      refuse(error);
      return;
    }
    results.inert = false;
    temperature.set(Math.log2(state.temperature));
    state.word.source = Math.min(state.word.source, now.source.length - 1);
    state.word.target = Math.min(state.word.target, now.target.length - 1);
    redraw(root, draw);
    root.dataset.output = now.target.join(" "); // for tests
  }

  // An unknown word, with buttons for what may have been meant.
  function refuse({ message, position, near }) {
    readAs.textContent = "";
    problem.append(el("p", {}, message));
    for (const word of near) {
      problem.append(button(`write “${word}”`, {}, () => {
        const words = state.sentence.split(/\s+/).filter(Boolean);
        words[position] = word;
        input.value = words.join(" ");
        input.focus();
        read(input.value);
      }));
    }
    problem.append(el("p", { class: "tinytf-note" }, "Below, dimmed: the last sentence that could be read."));
  }

  // ---- draw ---------------------------------------------------------------------------------------
  function draw() {
    one.setAttribute("aria-pressed", String(atOnePosition()));
    undo.disabled = !isChanged();
    drawStage();
    drawSummary();
    boardBox.replaceChildren(
      el("p", { class: "panel-name" }, "Where each head looks, and switches to turn it off"),
      el("p", { class: "tinytf-note" }, "In each small map, a row is a word that looks and a column a word that it looks at."),
      tinytf.board(model, now.maps, plain.maps, state, {
        look: (sublayer, head) => {
          if (!flush()) return;
          state.swap = null;
          state.head = { name: sublayer.name, head };
          state.kind = sublayer.kind;
          redraw(root, draw);
        },
        flip: (part) => change(() => flip(state.off, part)),
      }));
    drawRibbons();
  }
  const flip = (set, value) => (set.has(value) ? set.delete(value) : set.add(value));

  const atOnePosition = () => state.positions !== null && state.positions.every((position) => position === 0);

  const { english } = tinytf.phrasebook;
  let sourceNodes = [], targetNodes = [], ribbons = null;

  function drawStage() {
    const sourceAsks = state.kind === "encoder";
    const source = now.source.map((word, i) => wordNode("source", i, spelled(word), sourceAsks));
    sourceNodes = source;
    const columns = source.map((node, i) =>
      el("div", { class: `tinytf-column${state.hidden.has(i) ? " is-hidden" : ""}` }, node, ...controls(i)));
    const target = [], merged = tinytf.compare(plain.target, now.target);
    targetNodes = [];
    for (const { word, was, is } of merged) {
      if (is === undefined) {
        target.push(el("del", { class: "token lost", title: `${english[word] || word}: no longer written` }, ...spelled(word),
          el("small", {}, plain.probs[was].toFixed(2)), el("small", {}, "lost")));
        continue;
      }
      const node = wordNode("target", is, spelled(word), !sourceAsks);
      if (english[word]) node.title = english[word];
      node.append(el("small", { class: "prob" }, now.probs[is].toFixed(2)));
      if (was === undefined) node.append(el("small", { class: "tinytf-mark" }, "new"));
      else if (Math.abs(now.probs[is] - plain.probs[was]) >= 0.02) {
        node.append(el("small", { class: "tinytf-mark" }, `was ${plain.probs[was].toFixed(2)}`));
      }
      node.classList.toggle("new", was === undefined);
      node.classList.toggle("moved", was !== undefined && Math.abs(now.probs[is] - plain.probs[was]) >= 0.1);
      targetNodes.push(node);
      target.push(node);
    }
    ribbons = svg("svg", { class: "ribbons", "aria-hidden": "true" });
    const asking = sourceAsks ? sourceNodes : targetNodes;
    rove(asking, 1, (i) => choose(sourceAsks ? "source" : "target", i), state.word[sourceAsks ? "source" : "target"]);
    const group = (asks, label) => (asks ? { role: "radiogroup", "aria-label": label } : {});
    stage.replaceChildren(ribbons,
      el("p", { class: "row-name" }, "English: ", el("small", {}, "the numbers are positions; press two to swap " +
        "them. <eos> is the end of the sentence")),
      el("div", { class: "tinytf-row", ...group(sourceAsks, "source words, looking") }, ...columns),
      el("div", { class: "gap" }),
      el("div", { class: "tinytf-row", ...group(!sourceAsks, "target words, being written") }, ...target),
      el("p", { class: "row-name" }, "Chinese: ", el("small", {}, "under each word the probability that the model gave it")));
  }

  function wordNode(side, i, nodes, asks) {
    if (!asks) return el("span", { class: "token", "data-word": `${side} ${i}` }, ...nodes);
    const node = el("button", {
      type: "button", class: "token asks", role: "radio", "aria-checked": String(state.word[side] === i),
      "data-key": `${side} ${i}`, "data-word": `${side} ${i}`,
    }, ...nodes);
    node.addEventListener("click", () => choose(side, i));
    node.addEventListener("pointermove", (event) => event.pointerType === "mouse" && choose(side, i));
    return node;
  }

  // The two buttons below an English word; <eos> can be moved, but not hidden.
  function controls(i) {
    const word = now.source[i], hidden = state.hidden.has(i), last = i === now.source.length - 1;
    const position = state.positions ? state.positions[i] : i;
    const does = hidden ? "show" : "hide";
    const hide = button(does, { class: "tinytf-key", "data-key": `hide ${i}`, "aria-label": `${does} ${word}` },
      () => change(() => i < now.source.length - 1 && flip(state.hidden, i)));
    const move = toggle(position, `position ${position} of ${word}: swap`, state.swap === i,
      { class: `tinytf-key place${position === i ? "" : " is-moved"}`, "data-key": `place ${i}` }, () => swap(i));
    return last ? [el("span", { class: "tinytf-key empty" }), move] : [hide, move];
  }

  function swap(i) {
    if (!flush() || i >= now.source.length) return;
    const other = state.swap;
    if (other === null || other === i) { // the first of two, or the same again, which ends the swap
      state.swap = other === null ? i : null;
      redraw(root, draw);
      return;
    }
    const positions = [...(state.positions || now.source.map((_, place) => place))];
    [positions[i], positions[other]] = [positions[other], positions[i]];
    change(() => { state.positions = positions.every((position, place) => position === place) ? null : positions; });
  }

  function choose(side, i) {
    if (state.word[side] === i) return;
    state.word[side] = i;
    const nodes = side === "source" ? sourceNodes : targetNodes;
    nodes.forEach((node, j) => { node.setAttribute("aria-checked", String(j === i)); node.tabIndex = j === i ? 0 : -1; });
    drawRibbons();
  }

  const view = tinytf.ribbonView(stage, reading);
  function drawRibbons() {
    view({ state, now, sourceNodes, targetNodes, ribbons });
  }

  function drawSummary() {
    if (state.swap !== null) {
      summary.textContent = `Now press the number above the word that “${now.source[state.swap]}” changes places with.`;
      return;
    }
    summary.textContent = isChanged() ? tinytf.summary(plain, now) : "Nothing is changed yet: hide a word, swap two " +
      "positions, turn the temperature, or switch off a head below.";
  }

  if (window.ResizeObserver) new ResizeObserver(() => now && drawRibbons()).observe(stage);
  begin(tinytf.examples[0]);
}

tinytf.mount("translator", "translator", {}, start);
})();
