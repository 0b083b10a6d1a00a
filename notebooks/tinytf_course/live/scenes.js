// What each step of the film shows: a caption, and a table of numbers, each with its formula.
(() => {
"use strict";
const { range, row } = tinytf;
const two = (number) => number.toFixed(2).replace("-", "−");
const four = (number) => number.toFixed(4).replace("-", "−");
const rounded = (number) => Number(number.toFixed(2)); // as `two` shows it
// "= 0.12", or "≈ 0.12" where the rounded numbers before it give something else.
const gives = (shown, value, show = two) => `${show(shown) === show(value) ? "=" : "≈"} ${show(value)}`;
const largest = (weights) => weights.indexOf(Math.max(...weights));

// The beginning of a sum of n products: "0.12 · −0.30 + 0.05 · 0.41 + … (32 products)".
function products(a, b, n, shown = 3) {
  const terms = range(Math.min(n, shown)).map((i) => `${two(a[i])} · ${two(b[i])}`).join(" + ");
  return n > shown ? `${terms} + … (${n} products)` : terms;
}

// A table with a row for each word; `cellsOf(s)` gives the cells of word s.
const lines = (words, cellsOf) => words.map((word, s) => [word, ...cellsOf(s)]);

// In each scene `numbers` are those of film.js, `asks` is the place of the word that looks, and `n`
// says for how many numbers of a vector there is room.
function wordsScene({ words, ids, model }, asks) {
  const size = model.source.tokens.length;
  return {
    caption: "Each word has an id, its place in the vocabulary. The sentence ends with <eos>. " +
      `We follow the word “${words[asks]}”.`,
    head: [{ name: "word" }, { name: "id" }],
    rows: lines(words, (s) => [{
      value: ids[s], show: String,
      formula: `“${words[s]}” is entry ${ids[s]} of ${size}, counted from 0`,
    }]),
  };
}

function vectorsScene(numbers, asks, n) {
  return {
    caption: "Each id picks a row of the embedding table. That row is scaled, and the vector of the " +
      `word's position is added. The result is x, ${numbers.C} numbers for each word; here are the first ${n}.`,
    head: [{ name: "word" }, { name: "x", span: n }],
    rows: lines(numbers.words, (s) => range(n).map((i) => ({
      value: row(numbers.x, s)[i], signed: 3, formula: vectorFormula(numbers, s, i),
    }))),
  };
}

function projectionsScene(numbers, asks, n) {
  const parts = ["q", "k", "v"], shown = n / 2;
  return {
    caption: "x is normalised and multiplied by three matrices, which gives every word a query q, a key k " +
      `and a value v, ${numbers.D} numbers each in this head; here are the first ${shown}.`,
    head: [{ name: "word" }, ...parts.map((name) => ({ name, span: shown }))],
    rows: lines(numbers.words, (s) => parts.flatMap((part) => range(shown).map((i) => projected(numbers, part, s, i)))),
  };
}

function scoresScene(numbers, asks) {
  const { words, q, k, D } = numbers, word = words[asks];
  const product = numbers.products[asks], score = numbers.scores[asks];
  return {
    caption: `The query of “${word}” is compared with the key of every word: q·k, divided by √${D}. ` +
      "This is the score.",
    head: [{ name: "word" }, { name: "q·k" }, { name: `score = q·k / √${D}` }],
    rows: lines(words, (s) => [{
      value: product[s],
      formula: `q of ${word} · k of ${words[s]} = ${products(q[asks], k[s], D)} = ${two(product[s])}`,
    }, {
      value: score[s], signed: 6, formula: `${two(product[s])} / √${D} ${gives(rounded(product[s]) / Math.sqrt(D), score[s])}`,
    }]),
  };
}

function softmaxScene({ words, scores, weights }, asks) {
  const score = scores[asks], weight = weights[asks], powers = score.map(Math.exp);
  const total = powers.reduce((a, b) => a + b);
  return {
    caption: "The softmax turns the scores into weights: e to the power of each score, divided by the " +
      `sum of all, ${two(total)}. Weights are positive and sum to 1.`,
    head: [{ name: "word" }, { name: "score" }, { name: "e^score" }, { name: "weight" }],
    rows: lines(words, (s) => [
      { value: score[s], formula: `the score of ${words[s]} for ${words[asks]}: ${two(score[s])}` },
      { value: powers[s], formula: `e^${two(score[s])} ${gives(Math.exp(rounded(score[s])), powers[s])}` },
      {
        value: weight[s], weight: weight[s],
        formula: `${two(powers[s])} / ${two(total)} ${gives(rounded(powers[s]) / rounded(total), weight[s], four)}`,
      },
    ]),
  };
}

function mixtureScene(numbers, asks, n) {
  const { words } = numbers, weight = numbers.weights[asks], output = numbers.outputs[asks];
  const sum = (i) => weight.reduce((total, w, s) => total + rounded(w) * rounded(numbers.v[s][i]), 0);
  const mixed = (i) => products(weight, numbers.v.map((value) => value[i]), words.length, words.length);
  return {
    caption: `The output for “${words[asks]}” is the mixture of all values, each times its weight. ` +
      `The value of “${words[largest(weight)]}” counts most.`,
    head: [{ name: "word" }, { name: "weight" }, { name: "v", span: n }],
    rows: lines(words, (s) => [
      { value: weight[s], weight: weight[s], formula: `the weight of ${words[s]} for ${words[asks]}: ${four(weight[s])}` },
      ...range(n).map((i) => projected(numbers, "v", s, i)),
    ]),
    foot: ["output", { value: 1, formula: "the weights sum to 1" }, ...range(n).map((i) => ({
      value: output[i], signed: 1.5, formula: `output[${i}] = ${mixed(i)} ${gives(sum(i), output[i])}`,
    }))],
  };
}

// ---- formulas of single numbers -------------------------------------------------------------------
function vectorFormula({ embedding, model, x, ids, C, words }, s, i) {
  const entry = row(embedding, ids[s])[i], position = row(model.encoding, s)[i];
  const scaled = Math.sqrt(C) * entry;
  const wave = `${i % 2 ? "cos" : "sin"}(${s} / 10000^(${i - (i % 2)}/${C}))`;
  return `x[${i}] of ${words[s]} = √${C} · ${two(entry)} (embedding) + ${wave} ` +
    `${gives(Math.sqrt(C) * rounded(entry), scaled)} + ${two(position)} ` +
    gives(rounded(scaled) + rounded(position), row(x, s)[i]);
}

// Number i of the query, key or value of word s.
function projected(numbers, letter, s, i) {
  const { model, normed, words, head, D, C } = numbers, value = numbers[letter][s][i];
  const name = `${tinytf.film.LAYER}.self_attention.w_${letter}`, place = head * D + i;
  const weight = row(model.tensors[`${name}.weight`], place), bias = model.tensors[`${name}.bias`].data[place];
  const product = `norm(x) · W_${letter.toUpperCase()} = ${products(row(normed, s), weight, C)}`;
  return {
    value, signed: 2, formula: `${letter}[${i}] of ${words[s]} = ${product} + ${two(bias)} (bias) = ${two(value)}`,
  };
}

tinytf.scenes = [
  ["words", wordsScene], ["vectors", vectorsScene], ["q, k and v", projectionsScene],
  ["scores", scoresScene], ["softmax", softmaxScene], ["mixture", mixtureScene],
].map(([name, scene]) => ({ name, scene }));
})();
