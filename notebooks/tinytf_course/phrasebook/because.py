"""`because it was too ...`: the adjective decides which noun `it` is, and Chinese says that noun again.

A frame is: English before `because` and its Chinese, what can be subject and object, the adjectives that
make `it` the subject, and those that make it the object. A person can tell from the verb and the
adjective alone: what is too tired to cross is the animal; what is too wide to cross is the street.
"""

# Tables read best as running text, one row a line.
# ruff: noqa: C408, E501

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar

CHINESE = dict(
    tired="累", weak="弱", sleepy="困", scared="害怕", hungry="饿", thirsty="渴", full="饱", slow="慢",
    fast="快", fat="胖", lazy="懒", angry="生气", wide="宽", deep="深", long="长", narrow="窄", salty="咸",
    hot="烫", hard="硬", soft="软", cold="凉", bitter="苦", dirty="脏", high="高", heavy="重", light="轻",
    big="大", small="小", thick="厚", thin="薄", dark="黑", noisy="吵", dangerous="危险", clever="聪明",
    fresh="新鲜", delicious="好吃", clean="干净", warm="暖和", comfortable="舒服", quiet="安静", short="短",
)  # fmt: skip
# "did not" frames end in `it was too ...`; the others in `it was (very) ...`.
_FRAMES = """
did not cross {o} | 没有<did,not> 过<cross> {o} | animal dog cat horse cow sheep | street bridge | tired weak slow scared hungry | wide long dangerous
did not cross {o} | 没有<did,not> 过<cross> {o} | animal dog horse cow sheep | river | tired weak scared hungry | wide deep dangerous
did not cross {o} | 没有<did,not> 过<cross> {o} | car | bridge | heavy wide | narrow dangerous
did not eat {o} | 没有<did,not> 吃<eat> {o} | cat dog | fish meat bread egg | full tired sleepy | salty hot hard cold
did not eat {o} | 没有<did,not> 吃<eat> {o} | horse cow sheep rabbit panda | apple bread | full tired sleepy | hard cold dirty
did not drink {o} | 没有<did,not> 喝<drink> {o} | cat dog | water milk soup | full tired sleepy | hot cold dirty
did not fit in {o} | 放不进<did,not,fit,in> {o} | table bed chair computer | room car | big wide heavy | small narrow
did not fit in {o} | 放不进<did,not,fit,in> {o} | book hat coat ball cup | bag box | big thick | small narrow
did not jump over {o} | 没有<did,not> 跳过<jump,over> {o} | horse dog cat sheep rabbit | wall | tired weak fat lazy | high wide
did not jump over {o} | 没有<did,not> 跳过<jump,over> {o} | horse dog cat sheep rabbit | river | tired weak fat lazy | wide deep
did not climb {o} | 没有<did,not> 爬<climb> {o} | cat mouse panda animal | tree wall mountain | tired weak fat lazy | high dangerous
did not catch {o} | 没有<did,not> 抓住<catch> {o} | cat dog animal | mouse bird rabbit | slow tired lazy fat sleepy | fast clever
did not pull {o} | 没有<did,not> 拉<pull> {o} | horse cow dog | box car table bed | tired weak small lazy | heavy big
did not sleep on {o} | 没有<did,not> 睡<sleep> 在<on> {o} 上<on> | cat dog animal | chair bed mat table | hungry scared thirsty | hard cold dirty narrow
did not enter {o} | 没有<did,not> 进<enter> {o} | cat dog horse animal | house room garden kitchen | scared tired lazy | dark small noisy
did not see {o} | 没有<did,not> 看见<see> {o} | cat dog horse | mouse ball key egg | tired sleepy lazy | small
did not break {o} | 没有<did,not> 打破<break> {o} | ball | window cup | light slow soft | thick
did not cut {o} | 没有<did,not> 切开<cut> {o} | knife | bread meat cake apple | short small thin | hard thick
ate {o} | 吃<ate> 了<ate> {o} | cat dog animal | fish meat bread egg | hungry | fresh delicious
drank {o} | 喝<drank> 了<drank> {o} | cat dog horse animal | water milk | thirsty | clean fresh
slept on {o} | 睡<slept> 在<on> {o} 上<on> | cat dog animal | bed chair mat | tired sleepy lazy | soft warm comfortable
caught {o} | 抓住<caught> 了<caught> {o} | cat dog | mouse bird rabbit | fast clever hungry | slow weak fat
left {o} | 离开<left> 了<left> {o} | cat dog animal bird | room house garden kitchen | scared hungry thirsty | noisy dirty dark dangerous
broke {o} | 打破<broke> 了<broke> {o} | ball | window cup | heavy hard fast | thin
crossed {o} | 过<crossed> 了<crossed> {o} | dog horse cow animal | river street | hungry scared thirsty | narrow quiet
"""


def add_because(grammar: Grammar) -> None:
    """The kind `because`: every frame with every subject and object, each adjective on its side."""
    for line in _FRAMES.strip().splitlines():
        english, chinese, subjects, objects, of_subject, of_object = line.split(" | ")
        verb = english.replace("did not ", "").split()[0]
        verb = {verb.past: verb.base for verb in lex.VERBS}.get(verb, verb)
        english = english.replace("{o}", "{{o={o}}}")
        too = english.startswith("did not")
        for subject in subjects.split():
            for thing in objects.split():
                if subject == thing:
                    continue
                reserved = (verb, thing) in lex.RESERVED_OBJECTS
                head = english.format(o=f"{_symbol(thing)}")
                for side, adjectives in (("s", of_subject), ("o", of_object)):
                    noun = _chinese(subject if side == "s" else thing)
                    kinds = f"why/{side}/{adjectives}/{too}".replace(" ", "+")
                    if kinds not in grammar.rules:
                        _add_reasons(grammar, kinds, adjectives.split(), too)
                    grammar.rule(
                        f"because/{side}",
                        f"{{s={_symbol(subject)}}} {head} because it {{r={kinds}}}",
                        f"{{s}} {chinese} 因为<because> {noun}<it> {{r}}",
                        weight=1 / (len(subjects.split()) * len(objects.split())),
                        reserved=reserved,
                        it=side,
                    )
    for side in "so":
        grammar.rule("because", f"{{b=because/{side}}}", "{b}", 4)
        fronted = f"{{t=time/past}} {{b=because/{side}}}"
        grammar.rule("because", fronted, "{t} {b}")


def _symbol(noun: str) -> str:
    return f"it/{noun}"


def _chinese(noun: str) -> str:
    return lex.NOUNS[noun].chinese if noun in lex.NOUNS else lex.MASSES[noun][0]


def _add_reasons(grammar: Grammar, symbol: str, adjectives: list[str], too: bool) -> None:
    for word in adjectives:
        chinese = f"{CHINESE[word]}<{word}>"
        if too:
            grammar.rule(symbol, f"was too {word}", f"太<too> {chinese} 了<too>")
        else:
            grammar.rule(symbol, f"was very {word}", f"非常<very> {chinese}")
            grammar.rule(symbol, f"was {word}", f"很<was> {chinese}", 2)
