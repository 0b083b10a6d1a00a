// The board of all heads: a small map of each, to look at it, and a switch, to turn it off.
(() => {
"use strict";
const { el, button, rove } = tinytf;
const INK = [46, 134, 196]; // blue on light and on dark

const SIDES = [["Encoder", "encoder"], ["Decoder", "decoder"]];
const PARTS = ["self_attention", "cross_attention", "feed_forward"].map((part) => [part, part.replace("_", "-")]);

// All sublayers of a model, in the order in which a word passes them.
function sublayers(model) {
  const { num_layers, num_heads } = model.config;
  return SIDES.flatMap(([sideName, side]) => tinytf.range(num_layers).flatMap((layer) =>
    PARTS.filter(([part]) => side === "decoder" || part !== "cross_attention").map(([part, partName]) => ({
      name: `${side}.layers.${layer}.${part}`, side, sideName, layer, partName,
      kind: part === "feed_forward" ? null : part === "cross_attention" ? "cross" : side,
      heads: part === "feed_forward" ? 0 : num_heads,
      words: `${sideName.toLowerCase()} layer ${layer}, ${partName}`,
    }))));
}

// The weights of one head, a pixel each: rows look, columns are looked at.
function thumbnail(rows, head) {
  const width = Math.max(...rows.map((heads) => heads[head].length));
  const canvas = el("canvas", { width, height: rows.length, "aria-hidden": "true" });
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, rows.length);
  rows.forEach((heads, t) => heads[head].forEach((weight, s) => {
    image.data.set([...INK, Math.round(255 * weight)], 4 * (t * width + s));
  }));
  pen.putImageData(image, 0, 0);
  return canvas;
}

// `maps` shows what heads look at now, and `before` what they looked at when nothing was off.
// `state.off` holds what is off, `state.head` the head that is looked at, as { name, head }.
function board(model, maps, before, state, { look, flip }) {
  const thumbs = [], chosen = [], switches = [];
  const group = (side, sideName) => el("div", { class: "side" }, el("p", { class: "panel-name" }, sideName),
    ...sublayers(model).filter((sublayer) => sublayer.side === side).map(row));

  const toggle = (part, text, words, off) => button(text, {
    class: "switch", role: "switch", "aria-checked": String(!off), "aria-label": `${text}: ${words}`,
    "data-key": part, "data-part": part,
  }, () => flip(part));

  function row(sublayer) {
    const whole = state.off.has(sublayer.name);
    const text = `${sublayer.heads ? "all " : ""}${whole ? "off" : "on"}`;
    const all = toggle(sublayer.name, text, sublayer.words, whole);
    const cells = tinytf.range(sublayer.heads).map((h) => cell(sublayer, h, whole));
    switches.push(all);
    return el("div", { class: "sublayer", "data-kind": sublayer.kind || "none" },
      el("span", { class: "name" }, `layer ${sublayer.layer} ${sublayer.partName}`), ...cells,
      el("span", { class: "head whole" }, all));
  }

  function cell(sublayer, h, whole) {
    const part = `${sublayer.name}.${h}`, off = state.off.has(part);
    const isChosen = state.head.name === sublayer.name && state.head.head === h;
    const thumb = el("button", {
      type: "button", class: "thumb", role: "radio", "aria-checked": String(isChosen), "data-key": `look ${part}`,
      "data-look": part, "aria-label": `${sublayer.words}, head ${h}`,
    }, thumbnail((off || whole ? before : maps)[sublayer.name], h));
    thumb.addEventListener("click", () => look(sublayer, h));
    thumbs.push(thumb);
    chosen.push(() => look(sublayer, h));
    const isOff = off || whole, text = `${h} ${isOff ? "off" : "on"}`;
    const flipHead = toggle(part, text, `${sublayer.words}, head ${h}`, isOff);
    flipHead.disabled = whole;
    switches.push(flipHead);
    return el("span", { class: `head${isOff ? " is-off" : ""}` }, thumb, flipHead);
  }

  const sides = SIDES.map(([sideName, side]) => group(side, sideName));
  const current = thumbs.findIndex((thumb) => thumb.getAttribute("aria-checked") === "true");
  rove(thumbs, model.config.num_heads, (i) => chosen[i](), Math.max(0, current));
  rove(switches.filter((node) => !node.disabled), 1);
  return el("div", { class: "board", role: "group", "aria-label": "heads and sublayers" }, ...sides);
}

Object.assign(tinytf, { sublayers, board });
})();
