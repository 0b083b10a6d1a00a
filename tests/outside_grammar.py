"""Sentences of the phrasebook's words that its grammar lacks, with their Chinese, written by hand.

The Chinese is put together from the grammar's own constructions (time first, then place, then the
verb; a relative clause in front of its noun; `it` as its noun), so that a translator could have
inferred it. `|` parts what is equally good. A group's name says what its sentences ask for.
"""

# A Chinese character counts as two columns, and a row of words reads best unbroken.
# ruff: noqa: E501

GROUPS = {
    "two adjectives": """
        the big black cat sat on the mat = 大 黑 猫 坐 在 垫子 上
        i saw two small white dogs = 我 看见 了 两 只 小 白 狗
        she bought a long black coat = 她 买 了 一 件 长 黑 大衣
        he has a cute small rabbit = 他 有 一 只 可爱 的 小 兔子
        the old white horse slept = 老 白 马 睡觉 了
        my old red car is dirty = 我 的 旧 红 车 很 脏
        the young clever teacher laughed = 年轻 的 聪明 的 老师 笑 了 | 年轻 聪明 的 老师 笑 了
    """,
    "when and where": """
        yesterday i read a book in the library = 昨天 我 在 图书馆 里 读 了 一 本 书
        last week he met a friend at the station = 上周 他 在 车站 遇见 了 一 个 朋友
        on monday she sang a song in the garden = 星期一 她 在 花园 里 唱 了 一 首 歌
        tomorrow i will read a book in the library = 明天 我 会 在 图书馆 里 读 一 本 书
        he works at the hospital every day = 他 每天 在 医院 工作
        we play football in the park every week = 我们 每周 在 公园 里 踢 足球
        the cat slept on the bed yesterday = 猫 昨天 睡 在 床 上
        yesterday the cat slept on the bed = 昨天 猫 睡 在 床 上
        i bought a book in paris last year = 我 去年 在 巴黎 买 了 一 本 书
        the man sat beside the river this morning = 男人 今天 早上 坐 在 河 旁边
        we went to london by train last year = 我们 去年 坐 火车 去 了 伦敦
        yesterday we went to shanghai by plane = 昨天 我们 坐 飞机 去 了 上海
        on 3 march he will buy a car = 3 月 3 日 他 会 买 一 辆 车
        i will not go to the park tomorrow = 我 明天 不 会 去 公园
    """,
    "because": """
        i did not eat the bread because it was too hard = 我 没有 吃 面包 因为 面包 太 硬 了
        the boy did not cross the river because he was scared = 男孩 没有 过 河 因为 他 很 害怕
        i went to the hospital because my mother was tired = 我 去 了 医院 因为 我 妈妈 很 累
        we left the restaurant because it was too noisy = 我们 离开 了 饭馆 因为 饭馆 太 吵 了
        the dog slept because it was tired = 狗 睡觉 了 因为 狗 很 累
        the cat did not eat the fish because it was full = 猫 没有 吃 鱼 因为 猫 很 饱
        the cat that the dog saw slept because it was tired = 狗 看见 的 猫 睡觉 了 因为 猫 很 累
        the animal did not cross the street because the street was too wide = 动物 没有 过 马路 因为 马路 太 宽 了
    """,
    "a relative clause elsewhere": """
        i know the man who sold the car = 我 认识 卖 了 车 的 男人
        the book that i bought yesterday is new = 我 昨天 买 的 书 很 新
        the cat that the dog saw sat on the mat = 狗 看见 的 猫 坐 在 垫子 上
        where is the book that i bought ? = 我 买 的 书 在 哪里 ？
        the dog that ate the fish did not sleep = 吃 了 鱼 的 狗 没有 睡觉
        this is the book that my father wrote = 这 是 我 爸爸 写 的 书
        the house that he bought is bigger than my house = 他 买 的 房子 比 我 的 房子 大
        the car that i bought is red = 我 买 的 车 是 红色 的
        the dog that bit the boy is black = 咬 了 男孩 的 狗 是 黑色 的
        the cat that the dog that the man saw heard slept = 男人 看见 的 狗 听见 的 猫 睡觉 了
        the boy who saw the dog that ate the fish laughed = 看见 了 吃 了 鱼 的 狗 的 男孩 笑 了
        the man who met the woman who sold the car cried = 遇见 了 卖 了 车 的 女人 的 男人 哭 了
    """,
    "and": """
        the cat and the dog slept = 猫 和 狗 睡觉 了
        i bought a book and a map = 我 买 了 一 本 书 和 一 张 地图
        i like tea and coffee = 我 喜欢 茶 和 咖啡
        she has two cats and a dog = 她 有 两 只 猫 和 一 只 狗
        the black cat and the white dog sat under the table = 黑 猫 和 白 狗 坐 在 桌子 下面
    """,
    "animals as people": """
        the cat wants to eat the fish = 猫 想 吃 鱼
        the dog can swim = 狗 会 游泳
        the horse must drink the water = 马 必须 喝 水
        the cat is eating the fish = 猫 正在 吃 鱼
        the birds are drinking the water = 鸟 正在 喝 水
        the cat likes the milk = 猫 喜欢 牛奶
        my cat does not like the water = 我 的 猫 不 喜欢 水
        the dog will sleep tomorrow = 狗 明天 会 睡觉
        the dog often sleeps = 狗 经常 睡觉
    """,
    "other verbs and tenses": """
        i was tired yesterday = 我 昨天 很 累
        he was a teacher = 他 是 老师
        the teacher was reading a newspaper = 老师 正在 读 一 份 报纸
        he did not give me the book = 他 没有 给 我 书
        he was born in london = 他 在 伦敦 出生 | 他 出生 在 伦敦
        he lives in a small house = 他 住 在 一 座 小 房子 里 | 他 住 在 小 房子 里
        there was a dog in the garden = 花园 里 有 一 只 狗
        i ate my sister 's apple = 我 吃 了 我 姐姐 的 苹果
        my mother 's red car is new = 我 妈妈 的 红 车 很 新
        the doctor 's house is beside the river = 医生 的 房子 在 河 旁边
        the red car is faster than the blue car = 红 车 比 蓝 车 快
        my red umbrella is cheaper than your black umbrella = 我 的 红 雨伞 比 你 的 黑 雨伞 便宜
        i will go to the park with my friend tomorrow = 我 明天 会 和 我 的 朋友 一起 去 公园
    """,
    "other questions": """
        is the cat bigger than the dog ? = 猫 比 狗 大 吗 ？
        what does he want to eat ? = 他 想 吃 什么 ？
        who is tired ? = 谁 很 累 ？ | 谁 累 ？
        why is the dog hungry ? = 狗 为什么 饿 ？ | 狗 为什么 很 饿 ？
        where did the cat sleep ? = 猫 在 哪里 睡觉 ？ | 猫 在 哪里 睡 的 ？ | 猫 在 哪里 睡觉 的 ？ | 猫 睡 在 哪里 ？
        did she give you a ticket ? = 她 给 你 票 了 吗 ？ | 她 给 了 你 一 张 票 吗 ？
        did you see the cat that the dog saw ? = 你 看见 狗 看见 的 猫 了 吗 ？
    """,
}  # fmt: skip


def sentences() -> dict[str, set[str]]:
    """Give every English sentence with what is right in Chinese."""
    lines = [line for group in GROUPS.values() for line in group.strip().splitlines()]
    pairs = [line.strip().split(" = ") for line in lines]
    return {english: set(chinese.split(" | ")) for english, chinese in pairs}
