"""The words of the phrasebook, as data: what exists, and what goes with what.

A row of `NOUNS` is: singular, plural, Chinese, measure word, then the adjectives that a person might put
in front of it. `-` stands for a form that is not used. Verbs, adjectives and time words follow.
"""

# Tables read best as running text, one row a line.
# ruff: noqa: C408, E501, SIM905

from typing import NamedTuple


class Noun(NamedTuple):
    """`plural` is "" for words that are only used in the singular."""

    singular: str
    plural: str
    chinese: str
    measure: str
    adjectives: tuple[str, ...]


class Verb(NamedTuple):
    """`can` is 会 for a skill and 能 otherwise; `state` verbs (like, know) never take 了."""

    base: str
    third: str
    past: str
    chinese: str
    can: str
    state: bool
    objects: tuple[str, ...]


def _table(text: str, columns: int) -> list[list[str]]:
    """Rows of `columns` words (`-` is empty); the last column takes the rest of the row."""
    rows = []
    for line in text.strip().splitlines():
        words = ["" if word == "-" else word for word in line.split()]
        rows.append([*words[: columns - 1], " ".join(words[columns - 1 :])])
    return rows


_NOUNS = """
cat      cats      猫    只  black white small big cute clever old
dog      dogs      狗    只  black white small big cute clever old
bird     birds     鸟    只  black white small big beautiful
horse    horses    马    匹  black white small big beautiful old
cow      cows      牛    头  black white big old
sheep    sheep     羊    只  black white small old
rabbit   rabbits   兔子  只  black white small cute
mouse    mice      老鼠  只  black white small big cute
panda    pandas    熊猫  只  small big cute
animal   animals   动物  只  small big cute clever
fish     fish      鱼    条  black red small big fresh
man      men       男人  个  young clever famous kind
woman    women     女人  个  young clever famous kind beautiful
boy      boys      男孩  个  clever cute young
girl     girls     女孩  个  clever cute young beautiful
child    children  孩子  个  clever cute kind
teacher  teachers  老师  位  young clever famous kind
student  students  学生  个  young clever kind
doctor   doctors   医生  位  young clever famous kind
friend   friends   朋友  个  old clever kind
farmer   farmers   农民  个  young kind
driver   drivers   司机  位  young kind clever
writer   writers   作家  位  young famous clever
book     books     书    本  new old thick interesting expensive
letter   letters   信    封  long short interesting
newspaper newspapers 报纸 份 new old interesting
photo    photos    照片  张  new old beautiful
map      maps      地图  张  new old big
ticket   tickets   票    张  cheap expensive
table    tables    桌子  张  new old big small long
chair    chairs    椅子  把  new old small comfortable
bed      beds      床    张  new old big small comfortable
door     doors     门    扇  new old big white red
window   windows   窗户  扇  big small clean dirty
key      keys      钥匙  把  new old small
cup      cups      杯子  个  white red new clean dirty
knife    knives    刀    把  new small long
bag      bags      包    个  black red new expensive cheap
box      boxes     箱子  个  big small heavy red
car      cars      车    辆  black white red new old expensive
bike     bikes     自行车 辆 black red new old cheap
shirt    shirts    衬衫  件  white blue new clean dirty
coat     coats     大衣  件  black red long expensive
hat      hats      帽子  顶  black red blue old beautiful
umbrella umbrellas 雨伞  把  black red new cheap
phone    phones    手机  部  new old cheap expensive
computer computers 电脑  台  new old cheap expensive
ball     balls     球    个  red blue small big
flower   flowers   花    朵  red white blue beautiful
tree     trees     树    棵  big small old tall
apple    apples    苹果  个  red big small delicious
orange   oranges   橙子  个  big small delicious
egg      eggs      鸡蛋  个  big small fresh
cake     cakes     蛋糕  个  big small delicious
film     films     电影  部  new old interesting famous
song     songs     歌    首  new old beautiful
story    stories   故事  个  long short interesting
house    houses    房子  座  new old big small white beautiful
room     rooms     房间  个  big small clean comfortable
bridge   bridges   桥    座  long old new famous
garden   gardens   花园  个  big small beautiful
school   schools   学校  所  new big small famous
hospital hospitals 医院  家  new big small famous
shop     shops     商店  家  new big small
restaurant restaurants 饭馆 家 new small famous cheap
park     parks     公园  个  new big small beautiful
museum   museums   博物馆 座 new old famous
library  libraries 图书馆 座 new old big
mother   -         妈妈  -
father   -         爸爸  -
brother  brothers  哥哥  个
sister   sisters   姐姐  个
grandmother -      奶奶  -
grandfather -      爷爷  -
son      sons      儿子  个
daughter daughters 女儿  个
mat      -         垫子  个  red new
kitchen  -         厨房  个
station  -         车站  个
street   -         马路  条
river    -         河    条
wall     -         墙    面
mountain -         山    座
"""

MASSES = dict(  # word -> Chinese, and the adjectives in front of it
    water=("水", "cold clean"),
    milk=("牛奶", "cold fresh"),
    tea=("茶", "hot cold"),
    coffee=("咖啡", "hot cold"),
    soup=("汤", "hot delicious"),
    bread=("面包", "fresh delicious"),
    rice=("米饭", "hot"),
    meat=("肉", "fresh"),
    noodles=("面条", "hot delicious"),
    grass=("草", "fresh"),
)

HELPINGS = """
cup cups 杯 water milk tea coffee
bottle bottles 瓶 water milk
bowl bowls 碗 soup rice noodles
piece pieces 块 bread meat
"""

KIN = tuple("mother father brother sister grandmother grandfather son daughter".split())
PEOPLE = tuple(
    "man woman boy girl child teacher student doctor friend farmer driver writer".split()
)
JOBS = tuple("teacher student doctor farmer driver writer".split())
HUNTERS = ("cat", "dog")
GRAZERS = ("horse", "cow", "sheep", "rabbit")
ANIMALS = (*HUNTERS, *GRAZERS, "bird", "mouse", "panda", "animal")
CITIES = dict(beijing="北京", shanghai="上海", london="伦敦", paris="巴黎")
GOODS = tuple(
    "book map ticket table chair bed cup knife bag box car bike shirt coat hat umbrella phone "
    "computer flower cake house".split()
)

# in front of a noun; several single-syllable adjectives need no 的. old is 老 for the living.
ADJECTIVES = dict(
    black="黑", white="白", red="红", blue="蓝", small="小", big="大", old="旧", new="新", tall="高",
    long="长", short="短", thick="厚", hot="热", cold="冷", heavy="重 的", cute="可爱 的",
    clever="聪明 的", young="年轻 的", beautiful="漂亮 的", kind="善良 的", famous="有名 的",
    interesting="有趣 的", expensive="很 贵 的", cheap="便宜 的", comfortable="舒服 的",
    clean="干净 的", dirty="脏", fresh="新鲜 的", delicious="好吃 的",
)  # fmt: skip
NEUTRAL = ("black", "white", "red", "blue", "cute", "beautiful")
OWNABLE = frozenset(  # what a person calls "my"
    "cat dog bird horse cow sheep rabbit fish child teacher student doctor friend driver book letter "
    "newspaper photo map ticket table chair bed door window key cup knife bag box car bike shirt coat "
    "hat umbrella phone computer ball flower tree apple orange egg cake film song story house room "
    "garden school mat kitchen shop restaurant".split()
)
LIVING = ("tree", "friend", *ANIMALS)

# after "is": the Chinese, the comparative ("more" is put in front where it is spaced), and for whom.
PREDICATES = """
big       大    bigger    shop restaurant bridge cat dog bird horse panda box bag table bed house room garden park school car tree
small     小    smaller   cat dog bird mouse box bag table bed house room garden park school
tall      高    taller    man woman boy girl child teacher student brother sister father mother tree
young     年轻  younger   teacher doctor writer driver mother father
fast      快    faster    horse dog car bike
long      长    longer    letter story table bridge film knife
short     短    shorter   letter story film
thick     厚    thicker   book newspaper
heavy     重    heavier   box bag table computer
new       新    newer     bridge shop restaurant car bike phone computer house bag
expensive 贵    more expensive car house coat phone computer ticket bag bike
cheap     便宜  cheaper   restaurant car coat phone ticket umbrella hat bike
beautiful 漂亮  more beautiful garden park flower hat bird horse coat
clever    聪明  cleverer  boy girl child student cat dog teacher
interesting 有趣 more interesting book film story letter museum
comfortable 舒服 more comfortable bed chair room
clean     干净  cleaner   room kitchen window cup shirt
dirty     脏    dirtier   window cup shirt bag car
famous    有名  more famous writer doctor museum restaurant film
delicious 好吃  -  apple cake egg orange
fresh     新鲜  -  egg apple
tired     累    -  !person dog cat horse
hungry    饿    -  !person dog cat horse sheep
busy      忙    -  !person
happy     高兴  -  !person
angry     生气  -  !person
"""

# base, third person, past, Chinese, 会/能, objects. !goods and the like are lists of this file.
_VERBS = """
eat    eats    ate     吃   能 apple orange egg cake bread rice noodles meat fish
drink  drinks  drank   喝   能 water milk tea coffee soup
buy    buys    bought  买   能 !goods
sell   -       sold    卖   能 !goods
see    -       saw     看见 能 !people cat dog bird horse panda car
hear   -       heard   听见 能 bird dog song child
read   reads   read    读   会 book letter newspaper story
write  writes  wrote   写   会 book letter story song
watch  watches watched 看   能 film
open   -       opened  打开 能 door window box bag letter
close  -       closed  关上 能 door window
wash   washes  washed  洗   会 car shirt coat cup dog apple
find   -       found   找到 能 key phone cat dog ticket bag hat umbrella book child
lose   -       lost    丢   -  key phone bag ticket hat umbrella
help   helps   helped  帮助 能 !people !kin
meet   -       met     遇见 能 !people
visit  visits  visited 看望 能 grandmother grandfather teacher friend doctor
visit  visits  visited 参观 能 museum school library hospital
draw   draws   drew    画   会 flower tree horse cat bird house panda map
make   makes   made    做   会 cake noodles table chair soup
break  -       broke   打破 -  cup window
repair repairs repaired 修  会 car bike phone computer chair
clean  cleans  cleaned 打扫 会 room house kitchen garden
borrow -       borrowed 借  能 book bike umbrella car map knife
ride   rides   rode    骑   会 horse bike
use    uses    used    用   会 computer phone map knife
sing   sings   sang    唱   会 song
play   plays   played  踢   会 football
play   plays   played  弹   会 piano guitar
study  studies studied 学   能 chinese english
plant  plants  planted 种   会 tree flower
"""
_STATES = """
like   likes   liked   喜欢 - book film song story cat dog bird horse panda flower tea coffee cake fish teacher
love   loves   loved   爱   - !kin
know   knows   knew    认识 - !people
need   needs   needed  需要 - book map ticket key knife umbrella phone computer car friend doctor
"""
BARE_OBJECTS = dict(
    football="足球", piano="钢琴", guitar="吉他", chinese="中文", english="英文"
)  # fmt: skip

# base, third, past, -ing, Chinese, 会/能, whether it may be said with no time and no place, for animals too
INTRANSITIVES = """
sleep  sleeps  slept   sleeping 睡觉 能 yes yes
run    runs    ran     running  跑步 会 no  no
cry    cries   cried   crying   哭   - yes no
laugh  laughs  laughed laughing 笑   - yes no
swim   swims   swam    swimming 游泳 会 no  no
work   works   worked  working  工作 能 no  no
dance  dances  danced  dancing  跳舞 会 no  no
play   plays   played  playing  玩   能 no  no
arrive -       arrived -        到   - yes no
leave  -       left    -        离开 能 yes no
come   comes   came    -        来   能 yes no
"""

GERUNDS = dict(  # base -> -ing, for what is going on now
    eat="eating", drink="drinking", read="reading", write="writing", watch="watching",
    wash="washing", draw="drawing", make="making", repair="repairing", clean="cleaning",
    sing="singing", play="playing", study="studying", open="opening",
)  # fmt: skip

NUMBERS = dict(
    two="两", three="三", four="四", five="五", six="六", seven="七", eight="八", nine="九", ten="十",
    eleven="十一", twelve="十二", twenty="二十",
)  # fmt: skip
FIGURES = {  # the words that count; digits only stand in dates and hours
    "1": "a", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven",
    "8": "eight", "9": "nine", "10": "ten", "11": "eleven", "12": "twelve", "20": "twenty",
}  # fmt: skip
POSSESSIVES = dict(my="我", your="你", his="他", her="她", our="我们", their="他们")
SUBJECTS = dict(
    i="我", you="你", we="我们", they="他们", he="他", she="她"
)  # he, she: third person
OBJECTS = dict(me="我", you="你", him="他", her="她", us="我们", them="他们")
MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
WEEKDAYS = dict(
    monday="星期一", tuesday="星期二", wednesday="星期三", thursday="星期四", friday="星期五",
    saturday="星期六", sunday="星期日",
)  # fmt: skip
YEARS = range(2000, 2026)

# Word pairs that training never shows, though it shows each word with others.
RESERVED_ADJECTIVES = frozenset(
    [("black", "dog"), ("white", "horse"), ("red", "hat"), ("small", "house"), ("new", "phone"),
     ("old", "bike"), ("clever", "girl"), ("beautiful", "garden"),
     ("young", "teacher"), ("interesting", "story"), ("expensive", "bag"), ("clean", "cup"),
     ("delicious", "orange"), ("famous", "doctor"), ("long", "letter")]
)  # fmt: skip
RESERVED_OBJECTS = frozenset(
    [("eat", "egg"), ("drink", "soup"), ("sell", "hat"),
     ("read", "newspaper"), ("write", "song"), ("wash", "shirt"), ("find", "ticket"),
     ("lose", "umbrella"), ("open", "bag"), ("draw", "tree"), ("borrow", "map"), ("help", "farmer"),
     ("know", "driver"), ("need", "knife"), ("repair", "phone")]
)  # fmt: skip
RESERVED_NUMBERS = frozenset(
    [("two", "dogs"), ("three", "books"), ("four", "flowers"), ("five", "keys"), ("six", "chairs"),
     ("seven", "cats"), ("eight", "students"), ("nine", "letters"), ("ten", "trees"),
     ("eleven", "cups"), ("twelve", "eggs"), ("twenty", "photos")]
)  # fmt: skip

NOUNS: dict[str, Noun] = {
    row[0]: Noun(row[0], row[1], row[2], row[3], tuple(row[4].split())) for row in _table(_NOUNS, 5)
}
_LISTS = {"!goods": GOODS, "!people": PEOPLE, "!kin": KIN, "!person": (*PEOPLE, *KIN)}


def expand(words: str) -> tuple[str, ...]:
    """The words of a list, with `!people` and the like written out."""
    found: list[str] = []
    for word in words.split():
        found.extend(_LISTS.get(word, (word,)))
    return tuple(found)


VERBS = [
    Verb(base, third, past, chinese, can, state, expand(objects))
    for state, text in ((False, _VERBS), (True, _STATES))
    for base, third, past, chinese, can, objects in _table(text, 6)
]


def attributive(adjective: str, noun: str) -> str:
    """The Chinese of an adjective in front of a noun: 老 狗 but 旧 书."""
    return "老" if adjective == "old" and noun in LIVING else ADJECTIVES[adjective]
