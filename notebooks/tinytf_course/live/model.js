// The forward pass of tinytf/transformer.py and tinytf/gpt.py, in a page.
//
// A tensor is { rows, cols, data }: a Float32Array of rows × cols numbers, row after row. Weights
// and parts have the names of the state dict: "decoder.layers.0.cross_attention" is a sublayer, and
// its head 2 is "decoder.layers.0.cross_attention.2".
//
// All files of this folder are classic scripts, which share the global `tinytf`: a page that is
// opened from a disk (file://) may neither fetch a file nor load a module.
globalThis.tinytf ||= {};
(() => {
"use strict";

// ---- reading weights ------------------------------------------------------------------------------
const FLOAT16 = 1 << 16; // how many numbers of 16 bits there are
const float16Table = new Float32Array(FLOAT16);
for (let bits = 0; bits < FLOAT16; bits++) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) float16Table[bits] = sign * 2 ** -24 * fraction;
  else if (exponent === 31) float16Table[bits] = fraction ? NaN : sign * Infinity;
  else float16Table[bits] = sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

function fromFloat16(numbers) {
  const data = new Float32Array(numbers.length);
  for (let i = 0; i < data.length; i++) data[i] = float16Table[numbers[i]];
  return data;
}

// A safetensors file: 8 bytes with the header's length, the header in JSON, then the numbers.
// Returns { tensors, header }; raises an Error for what is no such file.
function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const json = new TextDecoder().decode(new Uint8Array(buffer, 8, length));
  const { __metadata__: metadata, ...entries } = JSON.parse(json);
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(entries)) {
    if (dtype !== "F16" && dtype !== "F32") throw new Error(`${name} is ${dtype}, not F16 or F32`);
    const bytes = buffer.slice(8 + length + begin, 8 + length + end);
    const data = dtype === "F32" ? new Float32Array(bytes) : fromFloat16(new Uint16Array(bytes));
    const cols = shape.at(-1);
    tensors[name] = { rows: data.length / cols, cols, data };
  }
  return { tensors, header: JSON.parse(metadata.header) };
}

// ---- arithmetic -----------------------------------------------------------------------------------
const zeros = (rows, cols) => ({ rows, cols, data: new Float32Array(rows * cols) });
const row = (x, t) => x.data.subarray(t * x.cols, (t + 1) * x.cols);
const range = (length, start = 0) => Array.from({ length }, (_, i) => start + i);
const argmax = (scores) => scores.reduce((best, score, i) => (score > scores[best] ? i : best), 0);

// The dot product of n numbers of a, from place i on, with n of b, from place j on.
function dot(a, i, b, j, n) {
  let sum = 0;
  for (let k = 0; k < n; k++) sum += a[i + k] * b[j + k];
  return sum;
}

// x (T, in) with weight (out, in) and bias (1, out) -> (T, out). Nearly all the time goes here.
function linear(x, weight, bias) {
  const y = zeros(x.rows, weight.rows), n = x.cols;
  for (let t = 0; t < x.rows; t++) {
    for (let o = 0; o < weight.rows; o++) {
      const sum = dot(x.data, t * n, weight.data, o * n, n);
      y.data[t * y.cols + o] = bias ? sum + bias.data[o] : sum;
    }
  }
  return y;
}

function layerNorm(x, weight, bias, eps = 1e-5) {
  const y = zeros(x.rows, x.cols), n = x.cols;
  for (let t = 0; t < x.rows; t++) {
    let mean = 0, variance = 0;
    for (const value of row(x, t)) mean += value / n;
    for (const value of row(x, t)) variance += (value - mean) ** 2 / n;
    const deviation = Math.sqrt(variance + eps);
    row(x, t).forEach((value, i) => {
      y.data[t * n + i] = ((value - mean) / deviation) * weight.data[i] + bias.data[i];
    });
  }
  return y;
}

const add = (x, y) => ({ ...x, data: x.data.map((value, i) => value + y.data[i]) });

// A row in which nothing may be looked at, all -Infinity, becomes zeros, as in tinytf.attention.
function softmax(scores) {
  let top = -Infinity, sum = 0;
  for (const score of scores) top = Math.max(top, score);
  if (top === -Infinity) return Array.from(scores, () => 0);
  const powers = Array.from(scores, (score) => Math.exp(score - top));
  for (const power of powers) sum += power;
  return powers.map((power) => power / sum);
}

const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

// Sines and cosines of falling frequency (Vaswani et al. 2017, section 3.5).
function sinusoidalEncoding(length, width) {
  const table = zeros(length, width);
  for (let position = 0; position < length; position++) {
    for (let i = 0; i < width; i++) {
      const angle = position * 10000 ** (-(i - (i % 2)) / width);
      table.data[position * width + i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return table;
}

// ---- the parts ------------------------------------------------------------------------------------
// What is changed in a run of the model, and what was seen in it:
//   off          Set of the names of parts that hand on zeros: heads and whole sublayers
//   hidden       Set of source positions that no word may look at
//   positions    where the source words are said to stand, instead of 0, 1, 2 …
//   temperature  a number by which all attention scores are divided
//   maps         by attention layer: for each word that looked, one row of weights a head
const newRun = (changes) => ({ off: new Set(), hidden: new Set(), temperature: 1, ...changes, maps: {} });

class Stacks { // what encoder, decoder and GPT are made of
  constructor({ tensors, header }) {
    this.tensors = tensors;
    this.config = { norm: "pre", activation: "gelu_tanh", ...header.model };
  }

  linear(name, x) {
    return linear(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]);
  }

  norm(name, x) {
    return layerNorm(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]);
  }

  // The vector of each id, times `scale`, plus that of its position -> (T, C)
  embed(ids, embedding, scale, encoding, positions) {
    const x = zeros(ids.length, embedding.cols);
    ids.forEach((id, t) => {
      const word = row(embedding, id), place = row(encoding, positions[t]);
      row(x, t).forEach((_, i, vector) => (vector[i] = word[i] * scale + place[i]));
    });
    return x;
  }

  // x (T, C) looks at `memory`, or where that is null at itself and at the rows that `cache` holds.
  // `mayAttend(t, s)` is the mask. Returns (T, C).
  attention(name, x, memory, cache, mayAttend, run) {
    const { num_heads: H, d_model: C } = this.config, D = C / H, T = x.rows;
    const start = memory ? 0 : cache.rows;
    const q = this.linear(`${name}.w_q`, x);
    if (!memory || !cache.rows) { // the memory is projected once
      const source = memory || x;
      cache.k.set(this.linear(`${name}.w_k`, source).data, cache.rows * C);
      cache.v.set(this.linear(`${name}.w_v`, source).data, cache.rows * C);
      cache.rows += source.rows;
    }
    const S = cache.rows, scale = 1 / (Math.sqrt(D) * run.temperature);
    const seen = (run.maps[name] ||= []), heads = zeros(T, C);
    for (let t = 0; t < T; t++) {
      seen.push(range(H).map((h) => {
        if (run.off.has(`${name}.${h}`)) return new Float32Array(S);
        const score = (s) => scale * dot(q.data, t * C + h * D, cache.k, s * C + h * D, D);
        return softmax(range(S).map((s) => (mayAttend(start + t, s) ? score(s) : -Infinity)));
      }));
      seen.at(-1).forEach((weights, h) => weights.forEach((weight, s) => {
        if (weight === 0) return;
        for (let i = h * D; i < (h + 1) * D; i++) heads.data[t * C + i] += weight * cache.v[s * C + i];
      }));
    }
    return this.linear(`${name}.w_o`, heads);
  }

  feedForward(name, x) {
    const wide = this.linear(`${name}.w_1`, x);
    wide.data = wide.data.map(ACTIVATIONS[this.config.activation]);
    return this.linear(`${name}.w_2`, wide);
  }

  // x + sublayer(norm(x)), or after the paper norm(x + sublayer(x)). A sublayer that is off computes
  // all the same, since its cache has to grow, but what it computes is not added.
  residual(layer, number, part, x, sublayer, run) {
    const norm = (y) => this.norm(`${layer}.residual_${number}.norm`, y);
    const pre = this.config.norm === "pre";
    const computed = sublayer(pre ? norm(x) : x);
    const sum = run.off.has(`${layer}.${part}`) ? x : add(x, computed);
    return pre ? sum : norm(sum);
  }

  layer(name, x, cache, mayAttend, run, memory, maySeeMemory) {
    const own = (y) => this.attention(`${name}.self_attention`, y, null, cache.own, mayAttend, run);
    const cross = (y) =>
      this.attention(`${name}.cross_attention`, y, memory, cache.cross, maySeeMemory, run);
    let number = 1;
    x = this.residual(name, number++, "self_attention", x, own, run);
    if (memory) x = this.residual(name, number++, "cross_attention", x, cross, run);
    const feedForward = (y) => this.feedForward(`${name}.feed_forward`, y);
    return this.residual(name, number, "feed_forward", x, feedForward, run);
  }

  stack(side, x, caches, ...rest) {
    caches.forEach((cache, i) => (x = this.layer(`${side}.layers.${i}`, x, cache, ...rest)));
    return this.config.norm === "pre" ? this.norm(`${side}.final_norm`, x) : x;
  }

  newCaches() { // one a layer: the keys and values of the rows read so far
    const { max_len, d_model, num_layers } = this.config, size = max_len * d_model;
    const empty = () => ({ rows: 0, k: new Float32Array(size), v: new Float32Array(size) });
    return range(num_layers).map(() => ({ own: empty(), cross: empty() }));
  }
}

Object.assign(tinytf, {
  readSafetensors, row, range, argmax, dot, linear, layerNorm, add, softmax, sinusoidalEncoding, newRun, Stacks,
});
})();
