// What all panels share: elements, groups of buttons, Chinese words, and how a model is loaded.
(() => {
"use strict";
const LEVELS = 20; // steps of the colour ramp, as in the attention explorer
const FOLDER = new URL(".", document.currentScript.src).href;

// ---- elements: all text becomes text nodes, so no markup that somebody types is ever run ----------
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const button = (name, attributes, onclick) => el("button", { type: "button", ...attributes, onclick }, name);

// A button that keeps the focus where it can't be used: `disabled` would lose it.
const allow = (node, on) => node.setAttribute("aria-disabled", String(!on));

// A button that is on or off; `name` for screen readers stays the same.
const toggle = (text, label, on, attributes, onclick) =>
  button(text, { "aria-label": label, "aria-pressed": String(on), ...attributes }, onclick);

const field = (name, ...nodes) => el("label", { class: "field" }, el("span", { class: "name" }, name), ...nodes);

// One tab stop for many buttons: arrow keys, Home and End move between them. `act` is called for the
// one that is moved to, where moving also chooses. The tab stop is the one that had the focus last.
function rove(nodes, columns = 1, act = () => {}, first = 0) {
  nodes.forEach((node, i) => {
    node.tabIndex = i === first ? 0 : -1;
    node.addEventListener("focus", () => nodes.forEach((other) => (other.tabIndex = other === node ? 0 : -1)));
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      let to = event.key === "Home" ? 0 : event.key === "End" ? nodes.length - 1 : i + step;
      if (Number.isNaN(to)) return;
      event.preventDefault();
      if (Math.abs(step) === columns && columns > 1 && !nodes[to]) return; // above the first row, below the last
      to = Math.max(0, Math.min(nodes.length - 1, to));
      nodes[to].focus();
      act(to);
    });
  });
}

// Buttons of which one is chosen. `choose(i)` is called when another one is.
function radios(label, names, chosen, choose, attributes = () => ({})) {
  const buttons = names.map((name, i) =>
    button(name, { role: "radio", "aria-checked": String(i === chosen), ...attributes(i) }, () => choose(i)));
  rove(buttons, 1, choose, Math.max(0, chosen));
  return el("span", { class: "group", role: "radiogroup", "aria-label": label }, ...buttons);
}

// Draw again without losing the place of the keyboard: a node is known by its data-key. Where it is
// gone, `other()` gives the node that gets the focus.
function redraw(root, draw, other = () => null) {
  const key = root.contains(document.activeElement) && document.activeElement.dataset.key;
  draw();
  if (key) (root.querySelector(`[data-key="${CSS.escape(key)}"]`) || other())?.focus({ preventScroll: true });
}

function slider(label, { min, max, step, value, show = String, key, change }) {
  const output = el("output", {}, show(value));
  const input = el("input", { type: "range", min, max, step, value, "aria-label": label, "data-key": key });
  const said = (number) => { output.textContent = show(number); input.setAttribute("aria-valuetext", show(number)); };
  input.addEventListener("input", () => { said(Number(input.value)); change(Number(input.value)); });
  const node = field(label, input, output);
  node.set = (number) => { input.value = number; said(number); };
  said(value);
  return node;
}

// ---- words ----------------------------------------------------------------------------------------
const level = (weight) => "c" + Math.round(Math.min(1, Math.max(0, weight)) * LEVELS);
const isChinese = (word) => /[\u2e80-\u9fff\uf900-\ufaff]/.test(word);

// Without a Chinese font all characters look alike: then pinyin stands in their place.
const hasChineseFont = (() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!pen) return true;
  pen.font = "20px system-ui, sans-serif";
  const [one, other] = ["猫", "坐"].map((character) => {
    pen.clearRect(0, 0, 40, 40);
    pen.fillText(character, 5, 28);
    return pen.getImageData(0, 0, 40, 40).data.join();
  });
  return one !== other;
})();

// A word as nodes: a Chinese one with its pinyin below.
function spelled(word) {
  const sound = tinytf.phrasebook.pinyin[word];
  if (!isChinese(word) || !sound) return [el("span", {}, word)];
  if (!hasChineseFont) return [el("span", {}, sound)];
  return [el("span", { lang: "zh-Hans" }, word), el("small", { class: "pinyin" }, sound)];
}

// A word as it can be shown here, and with its sound: 猫, and 猫 (māo).
const shown = (word) => (hasChineseFont ? word : tinytf.phrasebook.pinyin[word] || word);

function said(word) {
  const sound = isChinese(word) && tinytf.phrasebook.pinyin[word];
  return !sound ? word : hasChineseFont ? `${word} (${sound})` : sound;
}

const withPinyin = (text) => text.replace(/[\u2e80-\u9fff\uf900-\ufaff]+/g, said);

// ---- loading --------------------------------------------------------------------------------------
const adler32 = (bytes) => {
  let a = 1, b = 0;
  for (let i = 0; i < bytes.length; ) { // the remainder is taken before the sums pass 2^53
    for (const end = Math.min(i + 4096, bytes.length); i < end; i++) b += a += bytes[i];
    a %= 65521;
    b %= 65521;
  }
  return b * 65536 + a;
};

// Returns a promise of what `tinytf.readSafetensors` gives. Its Error says what the reader can do. A
// second attempt has an address of its own: browsers remember what they failed to load.
function loadWeights(name, attempt) {
  const file = `${name}.weights.js`;
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${why} Copy the whole folder of the site again, with ` +
      `_static/live/${file}, or switch off what blocks scripts on this page; then press “Try again”.`));
    const script = el("script", { src: `${FOLDER}${file}${attempt ? `?attempt=${attempt}` : ""}` });
    script.addEventListener("error", () => fail(`The model's file ${file} could not be loaded.`));
    script.addEventListener("load", () => {
      script.remove();
      try { resolve(decode(tinytf.weights?.[name])); } catch { fail(`The model's file ${file} is damaged.`); }
    });
    document.head.append(script);
  });
}

function decode({ bytes: length, adler32: checksum, base64 }) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  if (bytes.length !== length || adler32(bytes) !== checksum) throw new Error("damaged");
  return tinytf.readSafetensors(bytes.buffer);
}

// Start a panel of this kind wherever the page has one: load the weights when it is seen, or with
// `wait` (the text of a button) when it is asked for, then call `start(root, app, file)`.
function mount(kind, weights, { wait = null } = {}, start) {
  for (const root of document.querySelectorAll(`.tinytf-live[data-kind="${kind}"]:not([data-state])`)) {
    const app = root.querySelector(".app");
    // Otherwise a host such as a notebook or the theme takes the keys for itself.
    root.addEventListener("keydown", (event) => event.stopPropagation());
    let attempts = 0;
    const load = async () => {
      const held = app.contains(document.activeElement); // the focus, which would be lost with its button
      const hold = () => held && document.activeElement === document.body &&
        app.querySelector("input, textarea, select, button").focus({ preventScroll: true });
      root.dataset.state = "loading";
      app.replaceChildren(el("p", { class: "tinytf-note", role: "status" }, "The model is loading …"));
      try {
        const file = await loadWeights(weights, attempts++);
        app.replaceChildren();
        start(root, app, file);
        root.dataset.state = "ready";
      } catch (error) {
        root.dataset.state = "failed";
        app.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message), button("Try again", {}, load));
      }
      hold();
    };
    root.dataset.state = "waiting";
    if (wait) app.replaceChildren(button(wait, { class: "begin" }, load));
    else if (!window.IntersectionObserver) load();
    else {
      const seen = new IntersectionObserver((entries) => {
        if (entries.some((entry) => entry.isIntersecting)) seen.disconnect(), load();
      }, { rootMargin: "200px" });
      seen.observe(root);
    }
  }
}

Object.assign(tinytf, {
  el, svg, button, allow, toggle, field, rove, radios, redraw, slider, level, spelled, said, shown, withPinyin, mount,
});
})();
