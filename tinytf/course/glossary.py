"""The words of the course in English and Chinese, each with its meaning and its chapter."""

from tinytf.course.tables import table

# (English, Chinese, meaning, chapter that builds it)
TERMS = (
    ("recurrent network, RNN", "循环神经网络", "reads one token after another into one state", 1),
    ("hidden state", "隐藏状态", "the vector in which a recurrent network keeps what it read", 1),
    ("gate", "门控", "numbers between 0 and 1 that say how much passes", 1),
    ("vanishing gradient", "梯度消失", "a gradient multiplied away over many steps", 1),
    ("context vector", "上下文向量", "what the decoder is given of the source", 1),
    ("additive attention", "加性注意力", "a small network scores each query with each key", 1),
    ("inductive bias", "归纳偏置", "what an architecture finds easy before it has seen data", 1),
    ("token", "词元", "a piece of text that has an id; for our translator, a word", 2),
    ("vocabulary", "词表", "all the tokens a model knows", 2),
    ("embedding", "词嵌入", "the learned vector of a token, a row of a table", 2),
    ("one-hot vector", "独热向量", "a 1 at the token's place, 0 elsewhere", 2),
    ("byte-pair encoding, BPE", "字节对编码", "merging frequent neighbours, over and over", 2),
    ("pre-tokeniser", "预分词", "cuts text into pieces that merges stay within", 2),
    ("special token", "特殊词元", "an id that no plain text produces", 2),
    ("CBOW", "连续词袋模型", "learns vectors by guessing a word from its neighbours", 2),
    ("cosine similarity", "余弦相似度", "dot product of two vectors brought to length 1", 2),
    ("positional encoding", "位置编码", "a vector added to an embedding to say where it stands", 5),
    ("rotary positions, RoPE", "旋转位置编码", "queries and keys turned by their position", 5),
    ("ALiBi", "线性偏置", "a slope times the distance, taken off each score", 5),
    ("permutation-equivariant", "置换等变", "a shuffled input gives the shuffled output", 5),
    ("extrapolation", "外推", "working on sequences longer than those of training", 5),
    ("attention", "注意力", "an average of values, weighted by how well keys match a query", 3),
    ("query", "查询", "the vector of the word that looks", 3),
    ("key", "键", "the vector that a query is compared with", 3),
    ("value", "值", "the vector that is passed on where a key matches", 3),
    ("score", "得分", "query · key / √d_k, before the softmax", 3),
    ("softmax", "归一化指数函数", "turns scores into positive weights that sum to 1", 3),
    ("mask", "掩码", "says which keys a query may attend to; here True = may", 3),
    ("causal mask", "因果掩码", "hides what has not been written yet", 3),
    ("padding", "填充", "tokens that make the sentences of a batch equally long", 3),
    ("self-attention", "自注意力", "queries, keys and values from the same sentence", 3),
    ("cross-attention", "交叉注意力", "the decoder queries what the encoder found", 4),
    ("head", "注意力头", "one of several attentions side by side, each in its own subspace", 4),
    ("multi-head attention", "多头注意力", "all heads of a layer, joined by a linear map", 4),
    ("subspace of a head", "子空间", "the d_model / H numbers that one head works with", 4),
    ("antecedent", "先行词", "the noun that a pronoun stands for", 4),
    ("layer", "层", "one of several alike in a stack: attention, then feed-forward", 8),
    ("memory", "编码器输出", "what the encoder hands to the decoder, a vector per source token", 8),
    ("alignment", "词对齐", "which source word a target word translates", 4),
    ("alignment error rate, AER", "对齐错误率", "how far two sets of links differ, 0 to 1", 10),
    ("residual connection", "残差连接", "adding a layer's input to its output", 6),
    ("layer normalisation", "层归一化", "each vector to mean 0, variance 1; then scale, shift", 6),
    ("pre-norm, post-norm", "前置、后置归一化", "normalise before a layer, or after the sum", 6),
    ("dropout", "随机失活", "setting random activations to 0 while training", 6),
    ("initialisation", "初始化", "the random weights that training starts from", 6),
    ("feed-forward network", "前馈网络", "two linear maps, ReLU between, token by token", 7),
    ("activation function", "激活函数", "the bend between two linear maps: ReLU, GELU", 7),
    ("encoder", "编码器", "layers that read the whole source sentence", 8),
    ("decoder", "解码器", "layers that write the target, one token after another", 9),
    ("autoregressive", "自回归", "each token predicted from those before it", 9),
    ("teacher forcing", "教师强制", "training on the true previous tokens, not the model's own", 9),
    ("logits", "未归一化得分", "the score of each word of the vocabulary, before the softmax", 10),
    ("cross-entropy loss", "交叉熵损失", "minus the log-probability of the right token", 10),
    ("label smoothing", "标签平滑", "a little of the target goes to the other tokens", 10),
    ("learning-rate warm-up", "学习率预热", "small steps first, while the gradients are wild", 10),
    ("gradient clipping", "梯度裁剪", "shortening a gradient that is too long", 10),
    ("gradient accumulation", "梯度累积", "adding up several small batches before one step", 10),
    ("weight tying", "权重共享", "one table for the embedding and the output layer", 10),
    ("exact match", "精确匹配", "the share of sentences with every word right", 10),
    ("greedy decoding", "贪心解码", "always the likeliest next token", 11),
    ("beam search", "束搜索", "keeping the best few beginnings at every step", 11),
    ("KV cache", "键值缓存", "keys and values kept, so that nothing is computed twice", 11),
    ("causal language model", "因果语言模型", "predicts the next token from those before", 12),
    ("pre-training", "预训练", "learning from plain text, before any task", 12),
    ("temperature", "温度", "a divisor of the logits: low is cautious, high is adventurous", 13),
    ("top-k sampling", "top-k 采样", "drawing the next token from the k likeliest", 13),
    ("top-p, nucleus sampling", "核采样", "from the fewest tokens that reach probability p", 13),
    ("masked language model", "掩码语言模型", "fills in words that were hidden", 14),
    ("fine-tuning", "微调", "training on, for one task", 14),
    ("mixed precision", "混合精度", "computing in 16 bits where 32 are not needed", 15),
    ("ablation", "消融", "taking a part away to see what it did", 16),
    ("induction head", "归纳头", "finds what followed this token last time, and repeats it", 16),
    ("regularisation", "正则化", "what keeps a model from learning by heart; not 归一化", 6),
)  # fmt: skip


def glossary(*words):
    """A table of the course's terms, or of those that contain one of `words`."""
    found = [
        (english, chinese, meaning, f"{chapter:02d}")
        for english, chinese, meaning, chapter in TERMS
        if not words or any(word.lower() in f"{english} {chinese}".lower() for word in words)
    ]
    if not found:
        raise KeyError(f"no term contains {' or '.join(map(repr, words))}; glossary() lists all")
    return table(("English", "中文", "meaning", "chapter"), found)
