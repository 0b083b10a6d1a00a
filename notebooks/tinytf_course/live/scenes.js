// What each step of the film shows: a caption, and a table of numbers, each with its formula.
(() => {
"use strict";
const { range, row } = tinytf;
const two = (number) => number.toFixed(2).replace("-", "−");
const four = (number) => number.toFixed(4).replace("-", "−");

// The beginning of a long sum: "0.12 · −0.30 + 0.05 · 0.41 + …", of n products.
function sum(a, b, n, show = 3) {
  const terms = range(Math.min(n, show)).map((i) => `${two(a[i])} · ${two(b[i])}`).join(" + ");
  return n > show ? `${terms} + … (${n} products)` : terms;
}

// `numbers` are those of film.js, `asks` is the place of the word that looks, and `n` says how many
// numbers of a vector there is room for.
function filmScene(step, numbers, asks, n) {
  const { words, ids } = numbers, word = words[asks];
  const name = { name: "word" }, vector = (text) => ({ name: text, span: n });
  const lines = (...columns) => words.map((other, s) => [other, ...columns.flatMap((column) => column(s))]);
  const one = (cell) => (s) => [cell(s)];
  const cells = (cell) => (s) => range(n).map((i) => cell(s, i));
  const scenes = [
    () => ({
      caption: `Each word has an id, its place in the vocabulary. The sentence ends with <eos>. We follow the word “${word}”.`,
      head: [name, { name: "id" }],
      rows: lines(one((s) => ({
        value: ids[s], show: String, formula: `“${words[s]}” is entry ${ids[s]} of ${numbers.model.source.tokens.length}, counted from 0`,
      }))),
    }),
    () => ({
      caption: `Each id picks a row of the embedding table. That row is scaled, and the vector of the word's position is added. ` +
        `The result is x, ${numbers.C} numbers for each word; here are the first ${n}.`,
      head: [name, vector("x")],
      rows: lines(cells((s, i) => ({ value: row(numbers.x, s)[i], signed: 3, formula: vectorFormula(numbers, s, i) }))),
    }),
    () => ({
      caption: `x is normalised and multiplied by three matrices. So every word gets a query q, a key k and a value v, ` +
        `${numbers.D} numbers each in this head; here are the first ${n / 2}.`,
      head: [name, ...["q", "k", "v"].map((letter) => ({ name: letter, span: n / 2 }))],
      rows: lines(...["q", "k", "v"].map((letter) => (s) => range(n / 2).map((i) => projected(numbers, letter, s, i)))),
    }),
    () => ({
      caption: `The query of “${word}” is compared with the key of every word: q·k, divided by √${numbers.D}. This is the score.`,
      head: [name, { name: "q·k" }, { name: `score = q·k / √${numbers.D}` }],
      rows: lines(one((s) => ({
        value: numbers.products[asks][s],
        formula: `q of ${word} · k of ${words[s]} = ${sum(numbers.q[asks], numbers.k[s], numbers.D)} = ${two(numbers.products[asks][s])}`,
      })), one((s) => ({
        value: numbers.scores[asks][s], signed: 6,
        formula: `${two(numbers.products[asks][s])} / √${numbers.D} = ${two(numbers.scores[asks][s])}`,
      }))),
    }),
    () => {
      const powers = numbers.scores[asks].map(Math.exp), total = powers.reduce((a, b) => a + b);
      return {
        caption: `The softmax makes weights of the scores: e to the power of each score, divided by the sum of all, ${two(total)}. ` +
          `Weights are positive and sum to 1.`,
        head: [name, { name: "score" }, { name: "e^score" }, { name: "weight" }],
        rows: lines(
          one((s) => ({ value: numbers.scores[asks][s], formula: `the score of ${words[s]} for ${word}: ${two(numbers.scores[asks][s])}` })),
          one((s) => ({ value: powers[s], formula: `e^${two(numbers.scores[asks][s])} = ${two(powers[s])}` })),
          one((s) => ({
            value: numbers.weights[asks][s], weight: numbers.weights[asks][s],
            formula: `${two(powers[s])} / ${two(total)} = ${four(numbers.weights[asks][s])}`,
          }))),
      };
    },
    () => ({
      caption: `The output for “${word}” is the mixture of all values, each times its weight. ` +
        `The value of “${words[largest(numbers.weights[asks])]}” counts most.`,
      head: [name, { name: "weight" }, vector("v")],
      rows: lines(
        one((s) => ({
          value: numbers.weights[asks][s], weight: numbers.weights[asks][s],
          formula: `the weight of ${words[s]} for ${word}: ${four(numbers.weights[asks][s])}`,
        })),
        cells((s, i) => projected(numbers, "v", s, i))),
      foot: [`output`, { value: 1, formula: "the weights sum to 1" }, ...range(n).map((i) => ({
        value: numbers.outputs[asks][i], signed: 1.5,
        formula: `output[${i}] = ${sum(numbers.weights[asks], numbers.v.map((v) => v[i]), words.length, words.length)} = ${two(numbers.outputs[asks][i])}`,
      }))],
    }),
  ];
  return scenes[step]();
}

const largest = (weights) => weights.indexOf(Math.max(...weights));

function vectorFormula({ embedding, model, x, ids, C, words }, s, i) {
  const entry = row(embedding, ids[s])[i], wave = i % 2 ? "cos" : "sin", position = row(model.encoding, s)[i];
  return `x[${i}] of ${words[s]} = √${C} · ${two(entry)} (embedding) + ${wave}(${s} / 10000^(${i - (i % 2)}/${C})) = ` +
    `${two(Math.sqrt(C) * entry)} + ${two(position)} = ${two(row(x, s)[i])}`;
}

function projected({ model, normed, words, head, D, C, ...parts }, letter, s, i) {
  const weight = row(model.tensors[`${tinytf.film.LAYER}.self_attention.w_${letter}.weight`], head * D + i);
  const bias = model.tensors[`${tinytf.film.LAYER}.self_attention.w_${letter}.bias`].data[head * D + i];
  const value = parts[letter][s][i];
  return {
    value, signed: 2,
    formula: `${letter}[${i}] of ${words[s]} = norm(x) · W_${letter.toUpperCase()} = ${sum(row(normed, s), weight, C)} + ` +
      `${two(bias)} (bias) = ${two(value)}`,
  };
}

Object.assign(tinytf, { filmScene });
})();
