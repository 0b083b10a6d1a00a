// The writer in a page: an opening, the distribution of the next token, and the rules of sampling.
(() => {
"use strict";
const { el, button, allow, field, redraw, slider, softmax, restrict, ranked, draw: drawToken } = tinytf;
const SHOWN = 12, MOST_TOP_K = 51, STORY = 120; // the last place of the top-k slider rules nothing out
const OPENING = "One morning, a";

function start(root, app, file) {
  const model = new tinytf.Writer(file), { tokenizer } = model, past = [];
  const rule = { temperature: 1, topK: undefined, p: 1 };
  let text = OPENING, ended = false, scores = null, left = null, whole = [], read = [], writing = 0, waiting = 0;

  const box = el("textarea", {
    rows: 4, dir: "auto", spellcheck: "false", "aria-label": "the text so far", "data-key": "text",
    maxlength: 20000,
  });
  const note = el("p", { class: "tinytf-note", role: "status" }), list = el("div", { class: "tokens", role: "group" });
  const change = (name) => (value) => { rule[name] = value; show(); };
  const rules = el("div", { class: "bar" },
    slider("Temperature", {
      min: 0.1, max: 2, step: 0.1, value: 1, key: "temperature", show: (T) => T.toFixed(1),
      change: change("temperature"),
    }),
    slider("Top-k", {
      min: 1, max: MOST_TOP_K, step: 1, value: MOST_TOP_K, key: "top-k",
      show: (k) => (k === MOST_TOP_K ? "all" : String(k)),
      change: (k) => change("topK")(k === MOST_TOP_K ? undefined : k),
    }),
    slider("Top-p", {
      min: 0.05, max: 1, step: 0.05, value: 1, key: "top-p", show: (p) => p.toFixed(2), change: change("p"),
    }));
  const one = button("draw one token", { "data-key": "one" }, () => { flush(); if (!ended) append(drawToken(left)); });
  const on = button("write on", { "data-key": "on" }, () => {
    flush();
    if (writing) stop(); else writeOn(STORY);
  });
  const undo = button("undo", { "data-key": "undo" }, () => {
    stop();
    flush();
    if (past.length) setText(past.pop(), false);
  });
  const anew = button("new story", { "data-key": "anew" }, () => {
    stop();
    flush();
    past.push(text);
    setText(OPENING, false);
    box.focus();
  });
  app.append(field("Text", box), el("div", { class: "bar actions" }, one, on, undo, anew), rules,
    el("p", { class: "panel-name" }, "The next token: choose one"), list, note);

  box.addEventListener("input", () => {
    stop();
    clearTimeout(waiting);
    waiting = setTimeout(flush, 150);
  });

  // Read what was typed a moment ago.
  function flush() {
    clearTimeout(waiting);
    if (waiting) past.push(text), setText(box.value, false, false);
    waiting = 0;
  }

  // ---- the text -----------------------------------------------------------------------------------
  function setText(words, end, write = true) {
    [text, ended] = [words, end];
    if (write) {
      box.value = text;
      box.scrollTop = box.scrollHeight;
    }
    whole = tokenizer.encode(text);
    read = model.read(text, whole);
    scores = ended ? null : model.next(read);
    show();
  }

  function append(id) {
    past.push(text);
    if (id === tokenizer.end) { stop(); setText(text, true); } else setText(text + tokenizer.decode([id]), false);
  }

  function writeOn(count) {
    if (!count || ended) { stop(); return; }
    append(drawToken(left));
    if (ended) return;
    writing = setTimeout(() => writeOn(count - 1), 30);
    on.textContent = "stop";
  }

  function stop() {
    clearTimeout(writing);
    writing = 0;
    on.textContent = "write on";
  }

  // ---- the distribution ---------------------------------------------------------------------------
  function show() {
    for (const node of [one, on]) allow(node, !ended);
    allow(undo, past.length);
    if (ended) {
      if (list.contains(document.activeElement)) undo.focus();
      list.replaceChildren();
      note.textContent = "The story has ended with the token <|endoftext|>. Press “undo” or “new story” to go on.";
      return;
    }
    left = restrict(scores, rule);
    redraw(root, drawList, () => list.querySelector("button:enabled"));
    const kept = left.filter((score) => score !== -Infinity).length, size = whole.length + 1;
    const cut = size > read.length ? ` The text has ${size} tokens; the model reads the last ${read.length}.` : "";
    const all = scores.length.toLocaleString("en");
    const allowed = kept === scores.length ? `All ${all} tokens are` : `${kept} of ${all} tokens ${kept > 1 ? "are" : "is"}`;
    note.textContent = `${allowed} allowed. Outline: the model's own probability. ` +
      `Filled: after temperature, top-k and top-p.${cut}`;
    root.dataset.text = text; // for tests
  }

  function drawList() {
    const raw = softmax(scores), probs = softmax(left);
    list.setAttribute("aria-label", "the likeliest next tokens");
    const ids = ranked(raw).slice(0, SHOWN), most = Math.max(...ids.map((id) => Math.max(raw[id], probs[id])));
    list.replaceChildren(...ids.map((id) => {
      const out = left[id] === -Infinity, { text: piece, part } = shown(id);
      const after = out ? "ruled out" : probs[id].toFixed(3);
      const node = button("", {
        class: `next${out ? " is-out" : ""}`, "data-key": `token ${id}`, "data-token": id, disabled: part,
        "aria-label": `${piece}: ${after}`, title: `probability ${raw[id].toFixed(4)} before the rules`,
      }, () => { stop(); flush(); append(id); });
      node.append(el("span", { class: "piece" }, piece), el("span", { class: "chance" },
        el("i", { style: `width:${(100 * raw[id]) / most}%` }), el("b", { style: `width:${(100 * probs[id]) / most}%` })),
      el("span", { class: "number" }, after));
      return node;
    }));
  }

  // How a token is shown; some are only a part of a character's bytes, and can't be chosen.
  function shown(id) {
    if (id === tokenizer.end) return { text: "<|endoftext|>" };
    const word = tokenizer.decode([id]);
    if (word.includes("\ufffd")) return { text: `bytes ${tokenizer.bytes[id].join(" ")}`, part: true };
    return { text: word.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") };
  }

  setText(OPENING, false);
}

tinytf.mount("writer", "storyteller", { wait: "Load the writer (2 MB)" }, start);
})();
