"""The words of the course in English and Chinese, each with its meaning and its chapter."""

from tinytf_course.tables import table

# chapter that builds it | English, synonyms too | Chinese | meaning; in the order of the course
_ROWS = """
0 | alignment error rate | 对齐错误率 | how far two sets of alignment links differ, from 0 to 1
1 | recurrent network, RNN | 循环神经网络 | reads one token after another and keeps a single state
1 | hidden state | 隐藏状态 | the vector in which a recurrent network keeps what it has read
1 | gate | 门控 | numbers between 0 and 1 that decide how much passes
1 | vanishing gradient | 梯度消失 | a gradient that shrinks at every step on its way back
1 | batch size | 批大小 | how many sequences are processed side by side
2 | context vector | 上下文向量 | what the decoder is given of the source at one step
2 | additive attention | 加性注意力 | a small network scores each query with each key
2 | alignment | 词对齐 | which source word a target word translates
2 | inductive bias | 归纳偏置 | what an architecture finds easy before it has seen data
3 | token | 词元 | a piece of text with an id; for our translator, a word
3 | vocabulary | 词表 | all the tokens that a model knows
3 | special token | 特殊词元 | a token such as <bos> that no plain text produces
3 | byte-pair encoding, BPE | 字节对编码 | merges the most frequent pair, again and again
3 | pre-tokenizer | 预分词 | cuts a text into pieces that merges never cross
4 | component, feature | 分量、特征 | one of the d_model numbers of a vector
4 | embedding | 词嵌入 | the learned vector of a token, a row of a table
4 | one-hot vector | 独热向量 | 1 at the token's id, 0 everywhere else
4 | CBOW | 连续词袋模型 | learns vectors by predicting a word from its neighbours
4 | cosine similarity | 余弦相似度 | the dot product of two vectors scaled to length 1
4 | bag of words | 词袋 | a text without its order: only which words, how often
5 | attention | 注意力 | an average of values, weighted by how well keys match a query
5 | query | 查询 | the vector with which a position looks for information
5 | key | 键 | the vector that a query is compared with
5 | value | 值 | the vector that a position passes on when its key matches
5 | projection, linear layer | 投影、线性层 | a vector times a learned matrix: W_Q, W_K, W_V, W_O
5 | score | 得分 | query · key / √d_k, before the softmax
5 | softmax | 归一化指数函数 | turns scores into positive numbers that sum to 1
5 | attention weights | 注意力权重 | the softmax of the scores: each row sums to 1
5 | self-attention | 自注意力 | queries, keys and values from the same sequence
5 | mask | 掩码 | which keys a query may attend to; here True means it may
5 | causal mask | 因果掩码 | hides all later positions
5 | padding | 填充 | tokens that make the sequences of a batch equally long
6 | head | 注意力头 | one of several attentions side by side, each with its own projections
6 | multi-head attention | 多头注意力 | all heads of a layer, joined by the output projection
7 | cross-attention | 交叉注意力 | queries from the decoder, keys and values from the encoder
8 | position | 位置 | the index of a token in its sequence
8 | permutation equivariant | 置换等变 | a shuffled input gives the shuffled output
8 | positional encoding | 位置编码 | a vector for each position, added to the embedding
9 | rotary position embedding, RoPE | 旋转位置编码 | rotates queries and keys by position
9 | ALiBi | 线性偏置 | subtracts a slope times the distance from each score
9 | extrapolation | 外推 | use on sequences longer than those of training
10 | residual connection | 残差连接 | adds a sublayer's input to its output
10 | residual stream | 残差流 | the running sum that all sublayers read from and add to
10 | sublayer | 子层 | attention or feed-forward network, with its residual connection
10 | layer normalisation | 层归一化 | each vector to mean 0 and variance 1, then a scale and a shift
10 | RMSNorm | 均方根归一化 | divides each vector by its root mean square
10 | batch normalisation | 批归一化 | each feature to mean 0 and variance 1 over the batch
10 | pre-LN, post-LN | 前置、后置归一化 | normalises a sublayer's input, or the sum after it
10 | initialisation | 初始化 | the random weights from which training starts
10 | Xavier initialisation | Xavier 初始化 | random weights that keep the variance of what passes
10 | dropout | 随机失活 | sets random activations to 0 during training
10 | Jacobian | 雅可比矩阵 | the derivative of every output with respect to every input
10 | representation collapse | 表征坍塌 | tokens become alike, or layers do: two different things
10 | warm-up | 学习率预热 | the learning rate rises from 0 over the first steps
11 | feed-forward network | 前馈网络 | two linear layers with an activation between, token by token
11 | activation function | 激活函数 | the non-linear function between two linear layers
11 | hidden unit | 隐藏单元 | one of the d_ff components between the two linear layers
11 | GELU | 高斯误差线性单元 | x times the share of a standard normal distribution below x
11 | swish, SiLU | Swish 激活函数 | x times its own sigmoid
11 | rank collapse | 秩坍缩 | all tokens of a sequence become one vector
12 | encoder | 编码器 | layers in which every source token may attend to every other
12 | layer | 层 | attention and feed-forward network; a stack has several
12 | memory | 编码器输出 | the encoder's output, one vector for each source token
12 | cloze | 完形填空 | predicting a masked word from both sides
12 | floor | 熵下界 | the lowest loss possible, given what the model can see
12 | probe | 探针 | a linear layer trained to read something off a model's vectors
12 | control | 对照 | the same measurement where there can be no effect
13 | decoder | 解码器 | layers that generate the target, token by token
13 | autoregressive decoding | 自回归解码 | each token is predicted from those generated before it
13 | inference | 推理 | using a trained model; nothing is learned
13 | teacher forcing | 教师强制 | in training, the decoder's input is the correct target
13 | shift right | 右移 | the decoder's input is the target behind <bos>
13 | leak | 信息泄漏 | an output depends on a token that it must not see
13 | exposure bias | 曝光偏差 | the model never saw its own mistakes in training
14 | input, target, label | 输入、目标、标签 | what the model is given, and what it should predict
14 | logits | 未归一化得分 | one score for each token of the vocabulary, before the softmax
14 | unembedding | 输出投影 | the last linear layer, from d_model to the vocabulary
14 | weight tying | 权重共享 | one table for the embedding and the unembedding
14 | cross-entropy loss | 交叉熵损失 | minus the log-probability of the correct token, averaged
14 | label smoothing | 标签平滑 | gives a little of the target's probability to all other tokens
15 | hyperparameter | 超参数 | a setting that is chosen, not learned
15 | learning rate | 学习率 | how far one step moves the weights
15 | gradient clipping | 梯度裁剪 | shortens a gradient that is too long
15 | training run | 一次训练 | one training from initialisation to end, with one seed
15 | exact match | 精确匹配 | the share of sentences with every token right
16 | greedy decoding | 贪心解码 | always takes the most probable token
16 | beam search | 束搜索 | keeps the k most probable beginnings at each step
16 | length penalty | 长度惩罚 | divides the log-probability by a power of the length
16 | search error | 搜索错误 | the search missed the most probable output
16 | model error | 模型错误 | the most probable output is wrong
16 | mode | 众数 | the most probable of all outputs
16 | rescoring | 重打分 | choosing among finished candidates with a model's scores
17 | KV cache | 键值缓存 | keys and values are kept, so that none is computed twice
17 | prefill | 预填充 | the first call, which fills the cache with the whole prompt
17 | time to first token | 首个词元延迟 | how long a user waits for the prefill
17 | n-gram | n 元组 | n tokens in a row
17 | BLEU | BLEU 评分 | n-gram precision over a corpus, times a brevity penalty
17 | brevity penalty | 简短惩罚 | the factor in BLEU for translations that are too short
18 | causal language model | 因果语言模型 | predicts each token from those before it
18 | decoder-only | 仅解码器 | a Transformer without encoder and cross-attention
18 | context length, context window | 上下文长度、上下文窗口 | how many tokens a model takes at once
18 | prompt | 提示词 | the text that a model continues
19 | pretraining | 预训练 | training on plain text, before any task
19 | self-supervised learning | 自监督学习 | the text provides its own targets
19 | block | 文本块 | a stretch of consecutive tokens, one row of a batch
19 | epoch | 轮次 | one pass through the training data
19 | validation set, held out | 验证集、留出数据 | data to measure a model with, never to train it
19 | memorised | 记忆 | reproduced from the training data
19 | over-fitting | 过拟合 | better on the training data, worse on the validation set
19 | regularisation | 正则化 | whatever keeps a model from over-fitting; not 归一化
19 | weight decay | 权重衰减 | pulls the matrices towards 0 at every step
19 | gradient accumulation | 梯度累积 | adds the gradients of several batches before one step
19 | bits per byte | 每字节比特数 | the loss of a text in bits, divided by its bytes
19 | perplexity | 困惑度 | e to the loss: so many equally probable tokens
19 | bigram | 二元模型 | predicts a token from the one before it
19 | scaling law | 缩放定律 | how the loss falls as models, data and compute grow
20 | surprise | 惊异度 | minus the log-probability of a token
20 | entropy | 熵 | the mean surprise of a distribution
20 | temperature | 温度 | divides the logits: below 1 sharper, above 1 flatter
20 | top-k | top-k 采样 | sampling from the k most probable tokens
20 | top-p, nucleus sampling | 核采样 | sampling from the fewest tokens that together reach p
20 | min-p | min-p 采样 | sampling from tokens at least p times as probable as the best
20 | repetition penalty | 重复惩罚 | lowers the logits of tokens that have occurred, by a factor
20 | presence penalty | 存在惩罚 | lowers the logits of tokens that have occurred, by a constant
20 | distinct-n | distinct-n 多样性 | the share of a text's n-grams that differ
21 | masked language model | 掩码语言模型 | predicts masked tokens from both sides
21 | fine-tuning | 微调 | training a pretrained model further, for one task
21 | from scratch | 从头训练 | from random weights, without pretraining
21 | frozen | 冻结 | weights that training leaves unchanged
21 | [CLS], [SEP] | 分类与分隔标记 | first token, whose output is classified; end of a segment
21 | segment | 句段 | the first or the second of two input texts
21 | pooler | 池化层 | a linear layer and tanh on the output of [CLS]
21 | next-sentence prediction | 下一句预测 | does the second sentence follow the first?
21 | distillation | 知识蒸馏 | training on another model's probabilities
22 | span corruption | 片段破坏 | spans are removed from a text and become the target
22 | sentinel | 哨兵标记 | the token that replaces a removed span
22 | denoising | 去噪 | restoring a text that was corrupted
22 | text infilling | 文本填充 | one mask for a span of any length
22 | few-shot prompt | 少样本提示 | a prompt that contains examples of the task
22 | in-context learning | 上下文学习 | learning from examples in the context window
23 | SwiGLU | 门控前馈网络 | a feed-forward network whose hidden units are gated by SiLU
23 | grouped-query attention, GQA | 分组查询注意力 | groups of query heads share keys and values
23 | multi-query attention | 多查询注意力 | all query heads share one key head and one value head
23 | mixture of experts, MoE | 混合专家模型 | each token uses a few of many feed-forward networks
23 | router | 路由器 | chooses the experts of a token
23 | load-balancing loss | 负载均衡损失 | keeps all experts in use
23 | active parameters | 激活参数 | the parameters that take part in one token's computation
23 | sliding-window attention | 滑动窗口注意力 | each token attends only to the last few
23 | latent attention | 多头潜在注意力 | keys and values are computed from one small cached vector
23 | device meta | 元设备 | tensors there have shapes but no numbers
24 | SentencePiece | SentencePiece 分词 | cuts raw text into pieces; ▁ stands for a space
25 | patch | 图像块 | a small square of an image, used as a token
25 | class token | 分类标记 | a learned vector in front, whose output is classified
25 | data augmentation | 数据增强 | training on changed copies that keep their label
25 | occlusion | 遮挡 | hiding part of an input to see what the prediction needs
26 | floating-point operations, FLOPs | 浮点运算次数 | multiplications and additions, counted
26 | arithmetic intensity | 算术强度 | operations per byte moved
26 | roofline | 屋顶线模型 | the lower of two limits: memory traffic and arithmetic
26 | utilisation | 算力利用率 | the share of a machine's peak rate that is reached
26 | micro-batch | 微批次 | a part of a batch with a forward and backward pass of its own
27 | FlashAttention | 闪速注意力 | attention in tiles, which never stores the scores
27 | online softmax | 在线 softmax | a softmax with a running maximum and sum
27 | linear attention | 线性注意力 | a running table replaces the n² weights of the softmax
27 | bfloat16 | 脑浮点数 | 16 bits with the range of float32 and 8 significant bits
27 | mixed precision | 混合精度 | 16 bits where they suffice, 32 elsewhere
27 | loss scaling | 损失缩放 | a factor that keeps small float16 gradients from becoming 0
27 | quantisation | 量化 | weights stored as small integers with a scale
27 | packing, packed | 序列打包 | several texts in one row, with a mask between them
27 | activation checkpointing | 激活检查点 | activations are recomputed instead of stored
27 | data parallelism | 数据并行 | each process has all the weights and a share of the batch
27 | all-reduce | 全归约 | adds up a tensor over processes; all receive the sum
27 | ZeRO, FSDP | 零冗余优化器 | weights, gradients and optimiser state divided over processes
27 | tensor parallelism | 张量并行 | each process has some of the heads and hidden units
27 | pipeline | 流水线并行 | each process has some of the layers
28 | twin | 孪生句 | one of two sentences that differ in a single word
28 | attention pattern | 注意力模式 | the attention weights of one head for one text
28 | attention sink | 注意力汇聚点 | a position that receives weight no head needs
28 | forward hook | 前向钩子 | a function that is called with a module's output
28 | ablation | 消融 | removing a part of a model to see what it contributes
28 | induction head | 归纳头 | finds what followed the current token earlier, and copies it
28 | K-composition | 键组合 | keys computed from the output of an earlier head
29 | logit lens | 对数几率透镜 | the unembedding applied to the states between layers
29 | logit difference | 对数几率差 | one token's logit minus another's
29 | direct logit attribution | 直接归因 | a logit as the sum of what each part adds to it
29 | activation patching | 激活修补 | replacing an activation by that of another run
29 | noising, denoising | 加噪、去噪修补 | corrupted into clean (needed?), or the reverse (enough?)
29 | superposition | 叠加 | more features than dimensions, so not at right angles
29 | sparse autoencoder | 稀疏自编码器 | describes a state by a few directions out of many
30 | invariant | 不变量 | what holds for any weights and can therefore be tested
30 | false alarm | 误报 | a check that fails for a correct program
"""

_SPLIT = [row.split(" | ") for row in _ROWS.strip().splitlines()]
TERMS = tuple(
    (english, chinese, meaning, int(number)) for number, english, chinese, meaning in _SPLIT
)


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
