// Experiments with the translator. `gives` is what it then writes, which a test compares.
tinytf.examples = [
  {
    name: "A sentence as it is", sentence: "the cat sat on the mat", gives: "猫 坐 在 垫子 上",
    about: "Choose a Chinese word, and a head below (press a small map), to see where that head looks.",
  },
  {
    name: "Swap the positions of two nouns", sentence: "the dog saw the cat",
    positions: [0, 4, 2, 3, 1, 5], gives: "猫 看见 了 狗",
    about: "The words stay, and only the position that is added to dog and to cat is swapped. Now the cat sees " +
      "the dog: only the positions tell who does what.",
  },
  {
    name: "One head off: red and boy get lost",
    sentence: "the kind doctor gave the small boy a red apple yesterday",
    off: ["decoder.layers.0.cross_attention.1"], gives: "善良 的 医生 昨天 给 了 小 苹果",
    about: "Switching off one head rarely changes a word. Here it does: without head 1 of the cross-attention in the " +
      "decoder's layer 0, the model skips boy and red after 小, small, and writes apple.",
  },
  {
    name: "One head off: the wrong word for old",
    sentence: "the girl that the old woman helped sang a song",
    off: ["encoder.layers.1.self_attention.3"], gives: "旧 女人 帮助 的 女孩 唱 了 一 首 歌",
    about: "Chinese has two words for old: 老 for people, 旧 for things. With head 3 of the encoder's layer 1 off, " +
      "the model takes the one for things.",
  },
  {
    name: "Hide the word that decides",
    sentence: "the animal did not cross the street because it was too wide",
    hidden: [11], gives: "动物 没有 过 马路 因为 动物 太 轻 了",
    about: "Chinese repeats the noun that “it” stands for, and only “wide” shows that this is the street. With " +
      "“wide” hidden, the model repeats the animal and guesses an adjective with a probability of 0.03.",
  },
  {
    name: "All words at one position", sentence: "the dog saw the cat",
    positions: [0, 0, 0, 0, 0, 0], gives: "狗 看见 了 猫",
    about: "All words are at position 0, so nothing tells the model who sees whom. It still gets it right, but look " +
      "at the probability of its first word.",
  },
  {
    name: "No look at its own words",
    sentence: "the kind doctor gave the small boy a red apple yesterday",
    off: ["decoder.layers.0.self_attention"],
    gives: "善良 的 医生 昨天 给 了 小 男孩 一 个 红 苹果 一 个 红 苹果",
    about: "Self-attention is how the decoder sees what it has written. With this sublayer off in layer 0, it " +
      "writes the red apple twice.",
  },
  {
    name: "No look at the English sentence", sentence: "the cat sat on the mat",
    off: ["decoder.layers.0.cross_attention", "decoder.layers.1.cross_attention"], gives: "",
    about: "Cross-attention is the only way from the English words to the Chinese ones. Without it, the decoder " +
      "ends the sentence at once.",
  },
  {
    name: "Attention at temperature 4",
    sentence: "the kind doctor gave the small boy a red apple yesterday", temperature: 4,
    gives: "善良 的 医生 昨天 给 了 一 个 红 苹果",
    about: "All scores are divided by 4 before the softmax, so every head looks at many words at once. " +
      "The small boy is lost.",
  },
];
