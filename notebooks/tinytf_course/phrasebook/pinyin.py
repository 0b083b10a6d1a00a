"""How each Chinese word of the phrasebook is said, with tone marks."""

# Tables read best as running text, one row a line.
# ruff: noqa: E501

_TABLE = """
一 yī 一些 yìxiē 一样 yíyàng 一起 yìqǐ 七 qī 三 sān 上 shàng 上个月 shànggèyuè 上周 shàngzhōu 上海 Shànghǎi
下个月 xiàgèyuè 下午 xiàwǔ 下周 xiàzhōu 下面 xiàmiàn 不 bù 丢 diū 两 liǎng 个 gè 中文 Zhōngwén
为什么 wèishénme 九 jiǔ 书 shū 买 mǎi 了 le 二十 èrshí 五 wǔ 什么 shénme 什么时候 shénmeshíhou 今天 jīntiān
他 tā 他们 tāmen 件 jiàn 份 fèn 会 huì 伦敦 Lúndūn 位 wèi 住 zhù 作家 zuòjiā 作家们 zuòjiāmen 你 nǐ
便宜 piányi 信 xìn 修 xiū 借 jiè 做 zuò 儿子 érzi 兔子 tùzi 八 bā 公共汽车 gōnggòngqìchē 公园 gōngyuán
六 liù 关上 guānshang 写 xiě 农民 nóngmín 农民们 nóngmínmen 冷 lěng 凉 liáng 几 jǐ 出生 chūshēng 刀 dāo
切开 qiēkāi 到 dào 前 qián 前面 qiánmiàn 动物 dòngwù 包 bāo 北京 Běijīng 匹 pǐ 医生 yīshēng
医生们 yīshēngmen 医院 yīyuàn 十 shí 十一 shíyī 十二 shí'èr 卖 mài 博物馆 bówùguǎn 危险 wēixiǎn 厚 hòu
厨房 chúfáng 去 qù 去年 qùnián 参观 cānguān 只 zhī 可爱 kě'ài 台 tái 司机 sījī 司机们 sījīmen 吃 chī
吉他 jítā 后面 hòumiàn 吗 ma 听见 tīngjiàn 吵 chǎo 和 hé 咖啡 kāfēi 咬 yǎo 咸 xián 哥哥 gēge 哪里 nǎlǐ
哭 kū 唱 chàng 商店 shāngdiàn 善良 shànliáng 喜欢 xǐhuan 喝 hē 四 sì 因为 yīnwèi 困 kùn 图书馆 túshūguǎn
在 zài 地图 dìtú 坐 zuò 块 kuài 垫子 diànzi 墙 qiáng 大 dà 大衣 dàyī 天 tiān 太 tài 头 tóu 女人 nǚrén
女人们 nǚrénmen 女儿 nǚ'ér 女孩 nǚhái 女孩们 nǚháimen 奶奶 nǎinai 她 tā 好吃 hǎochī 妈妈 māma 姐姐 jiějie
学 xué 学校 xuéxiào 学生 xuésheng 学生们 xuéshengmen 孩子 háizi 孩子们 háizimen 安静 ānjìng 害怕 hàipà
家 jiā 宽 kuān 寄 jì 封 fēng 小 xiǎo 山 shān 工作 gōngzuò 巴黎 Bālí 帮助 bāngzhù 帽子 màozi 干净 gānjìng
年 nián 年轻 niánqīng 床 chuáng 应该 yīnggāi 座 zuò 张 zhāng 弱 ruò 弹 tán 很 hěn 很多 hěnduō 必须 bìxū
忙 máng 快 kuài 总是 zǒngshì 想 xiǎng 慢 màn 懒 lǎn 我 wǒ 我们 wǒmen 房子 fángzi 房间 fángjiān 所 suǒ
扇 shàn 手机 shǒujī 打开 dǎkāi 打扫 dǎsǎo 打破 dǎpò 找到 zhǎodào 把 bǎ 抓住 zhuāzhù 报纸 bàozhǐ 拉 lā
放不进 fàngbujìn 故事 gùshi 新 xīn 新鲜 xīnxiān 旁边 pángbiān 日 rì 旧 jiù 早上 zǎoshang 明天 míngtiān
明年 míngnián 星期 xīngqī 星期一 xīngqīyī 星期三 xīngqīsān 星期二 xīngqī'èr 星期五 xīngqīwǔ
星期六 xīngqīliù 星期四 xīngqīsì 星期日 xīngqīrì 昨天 zuótiān 昨晚 zuówǎn 是 shì 晚上 wǎnshang
暖和 nuǎnhuo 月 yuè 有 yǒu 有名 yǒumíng 有时候 yǒushíhou 有趣 yǒuqù 朋友 péngyou 朋友们 péngyoumen
本 běn 朵 duǒ 条 tiáo 来 lái 杯 bēi 杯子 bēizi 树 shù 桌子 zhuōzi 桥 qiáo 棵 kē 椅子 yǐzi 橙子 chéngzi
歌 gē 正在 zhèngzài 每周 měizhōu 每天 měitiān 比 bǐ 水 shuǐ 汤 tāng 没有 méiyǒu 河 hé 洗 xǐ 深 shēn
渴 kě 游泳 yóuyǒng 漂亮 piàoliang 火车 huǒchē 点 diǎn 烫 tàng 热 rè 照片 zhàopiàn 熊猫 xióngmāo 爬 pá
爱 ài 爷爷 yéye 爸爸 bàba 牛 niú 牛奶 niúnǎi 狗 gǒu 猫 māo 玩 wán 现在 xiànzài 球 qiú 瓶 píng
生气 shēngqì 用 yòng 电影 diànyǐng 电脑 diànnǎo 男人 nánrén 男人们 nánrénmen 男孩 nánhái 男孩们 nánháimen
画 huà 白 bái 白色 báisè 的 de 看 kàn 看望 kànwàng 看见 kànjiàn 睡 shuì 睡觉 shuìjiào 短 duǎn 硬 yìng
碗 wǎn 票 piào 离开 líkāi 种 zhòng 窄 zhǎi 窗户 chuānghu 站 zhàn 笑 xiào 箱子 xiāngzi 米饭 mǐfàn 累 lèi
红 hóng 红色 hóngsè 经常 jīngcháng 给 gěi 羊 yáng 老 lǎo 老师 lǎoshī 老师们 lǎoshīmen 老鼠 lǎoshǔ
聪明 cōngming 肉 ròu 胖 pàng 能 néng 脏 zāng 自行车 zìxíngchē 舒服 shūfu 花 huā 花园 huāyuán
英文 Yīngwén 苹果 píngguǒ 茶 chá 草 cǎo 蓝 lán 蓝色 lánsè 薄 báo 蛋糕 dàngāo 衬衫 chènshān 认识 rènshi
讲 jiǎng 读 dú 谁 shéi 贵 guì 足球 zúqiú 跑步 pǎobù 跳舞 tiàowǔ 跳过 tiàoguò 踢 tī 躲 duǒ 躺 tǎng
车 chē 车站 chēzhàn 软 ruǎn 轻 qīng 辆 liàng 过 guò 这 zhè 这些 zhèxiē 进 jìn 通常 tōngcháng 遇见 yùjiàn
那 nà 那些 nàxiē 部 bù 里 lǐ 重 zhòng 钢琴 gāngqín 钥匙 yàoshi 长 cháng 门 mén 雨伞 yǔsǎn 需要 xūyào
非常 fēicháng 面 miàn 面包 miànbāo 面条 miàntiáo 顶 dǐng 飞机 fēijī 饭馆 fànguǎn 饱 bǎo 饿 è 首 shǒu
马 mǎ 马路 mǎlù 骑 qí 高 gāo 高兴 gāoxìng 鱼 yú 鸟 niǎo 鸡蛋 jīdàn 黑 hēi 黑色 hēisè ？ ?
"""

_WORDS = _TABLE.split()
PINYIN: dict[str, str] = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
PINYIN.update((str(number), str(number)) for number in (*range(1, 32), *range(2000, 2026)))


def pinyin(word: str) -> str:
    """The pinyin of a Chinese word; digits stand for themselves, ？ becomes ?.

    Raises KeyError naming a word the phrasebook does not have.
    """
    if word not in PINYIN:
        raise KeyError(f"{word!r} is not a Chinese word of the phrasebook")
    return PINYIN[word]
