"""The storybook's words: people, things, places, tasks and feelings.

Little to bind: a dozen names, each always of one kind and gender, and a dozen things, told apart by
their nouns. Two people of a story are of different kinds and genders, so that "he" or "she" is one
of them.
"""

KINDS = {
    "Mia": "girl", "Nora": "girl", "Ada": "girl", "Dot": "mouse", "Olive": "owl", "Hetty": "hen",
    "Ben": "boy", "Tom": "boy", "Leo": "boy", "Bruno": "bear", "Rusty": "fox", "Felix": "frog",
}  # fmt: skip
FEMALE = ("girl", "mouse", "owl", "hen")
GENDER = {name: "f" if kind in FEMALE else "m" for name, kind in KINDS.items()}
TRAITS = ("cheerful", "shy", "clever", "brave", "gentle", "curious")
PRONOUNS = {
    "m": {"he": "he", "him": "him", "his": "his", "He": "He", "His": "His", "himself": "himself"},
    "f": {"he": "she", "him": "her", "his": "her", "He": "She", "His": "Her", "himself": "herself"},
}

# A thing: what it is for ("wanted a kite, to …"), and what a person who has it did.
THINGS = {
    "kite": ("fly it over the roofs", "let the kite dance high in the wind"),
    "drum": ("play a march", "beat the drum until everybody marched"),
    "lantern": (
        "read under the blanket",
        "lit the lantern and swung it like a small moon",
    ),
    "boat": ("sail it among the ducks", "pulled the boat along on a string"),
    "flute": ("play a soft tune", "played the flute so softly that a bird came closer"),
    "book": ("read about dragons", "read the book from the first page to the last"),
    "bell": ("wake up the whole street", "rang the bell, and the sound ran over the fields"),
    "ball": ("kick it over the fence", "kicked the ball so high that it touched a cloud"),
    "hat": ("look like a captain", "wore the hat like a captain"),
    "wagon": ("race down a hill", "pulled the wagon, and its wheels sang"),
    "shell": ("hear the sea", "held the shell to one ear and heard the sea"),
    "rope": ("skip a hundred times", "skipped with the rope and counted to a hundred"),
}
POCKET = ("flute", "bell", "ball", "shell", "rope")  # what fits into a pocket
BREAKS = ("kite", "drum", "lantern", "boat", "flute", "bell", "shell")  # what can break
COMFORTS = ("book", "lantern", "flute", "bell", "shell")  # what somebody in bed can use
FOR_OUTSIDE = ("kite", "boat", "ball", "wagon")
AT_WATER = {"boat": ("river", "beach")}  # where a thing is taken to, if not everywhere
# Heard or seen from far away: what is done with it, and what is followed.
SIGNALS = {
    "lantern": ("held up the lantern", "light"), "drum": ("beat the drum", "sound"),
    "bell": ("rang the bell", "sound"), "flute": ("played the flute", "tune"),
}  # fmt: skip
LOOSE = {  # what can come loose
    "kite": "tail", "drum": "skin", "lantern": "handle", "boat": "mast", "book": "cover",
    "hat": "ribbon", "wagon": "wheel",
}  # fmt: skip

# A place: its preposition, and what there is to see.
PLACES = {
    "garden": ("in", ("Bees hummed between the beans.", "A snail was crossing the path.")),
    "river": ("by", ("The water sang over the stones.", "Two ducks quarrelled over a crumb.")),
    "hill": ("on", ("From up there, the houses looked like toys.", "The wind smelled of hay.")),
    "market": ("at", ("A man was selling hot chestnuts.", "Everybody was talking at once.")),
    "forest": ("in", ("The trees whispered to each other.", "A woodpecker knocked and knocked.")),
    "meadow": ("in", ("The grass was white with daisies.", "A grasshopper practised its song.")),
    "beach": ("on", ("The waves came in, one after another.", "A crab waved with one claw.")),
    "barn": ("in", ("A sleepy cow looked up and looked away.", "It smelled of straw and apples.")),
    "library": ("in", ("It was so quiet that one heard the clock.", "Even the cat was reading.")),
    "bakery": ("in", ("It smelled of cinnamon.", "The oven was humming a warm song.")),
}
INDOORS = {
    "barn": "built a castle of straw",
    "library": "read stories about pirates",
    "bakery": "ate warm buns with butter",
}
NEAR = (  # where one can play hide and seek
    {"garden", "barn"}, {"forest", "meadow"}, {"river", "meadow"}, {"market", "bakery"},
    {"library", "bakery"}, {"hill", "forest"}, {"beach", "river"},
)  # fmt: skip
OUTDOORS = tuple(place for place in PLACES if place not in INDOORS)
PLANTED = ("garden", "meadow", "hill")
WILD = ("river", "hill", "forest", "meadow")
DARK = {  # what frightens there, and what it is
    "barn": ("went knock, knock", "an old door in the wind"),
    "forest": ("went crack, crack", "a hedgehog looking for its supper"),
    "library": ("went hoo, hoo", "the wind in the chimney"),
}
TASKS = {  # a task: its place, how it is asked for, and how it was done
    "ducks": ("river", "feed the ducks", "fed the ducks"),
    "roses": ("garden", "water the roses", "watered the roses"),
    "wood": ("forest", "gather the wood", "gathered the wood"),
    "sheep": ("meadow", "count the sheep", "counted the sheep"),
    "cow": ("barn", "milk the cow", "milked the cow"),
    "bread": ("bakery", "knead the dough", "kneaded the dough"),
    "shelves": ("library", "dust the shelves", "dusted the shelves"),
}
FEELINGS = {
    "happy": ("happy", "glad", "proud"),
    "sad": ("sad", "upset", "unhappy"),
}


def at(place):
    """Say where: "by the river"."""
    return f"{PLACES[place][0]} the {place}"


def article(noun):
    """The noun after "a" or "an"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
