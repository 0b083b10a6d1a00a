"""The tables that ship: each setting is there with each of its seeds, and every number is one."""

import math
from itertools import product

import pytest
from support import needs_scikit_learn

from tinytf.metrics.counting import count_parameters
from tinytf.text.words import WordTokenizer
from tinytf_course import studies
from tinytf_course.clinic.patients import PATIENTS
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import (
    batch_norm,
    bert_tasks,
    checks,
    clinic,
    decoding,
    digits_tables,
    encoder,
    encoder_tables,
    experts,
    families,
    induction,
    sampling,
    todays_block,
    trainability,
)
from tinytf_course.studies import decoder as decoder_study
from tinytf_course.studies import digits as digits_study
from tinytf_course.studies.__main__ import available

# name: (the columns that tell its settings, how many there are or which, the seeds of each)
FIVE = tuple(range(5))
TWO_TASKS = ("dates", "answers")
TABLES = {
    "batch_norm": ("norm batch lr", [*product(batch_norm.NORMS, (2, 4, 16, 64), [3e-3]),
                                     *product(batch_norm.NORMS, [4], [1e-3])], None),
    "bert_pairs": ("run", ["masked words", "next sentence", "sentence order"], FIVE),
    "bert_sections": ("run n", [*product(("bag of words", "pretrained", "from scratch"),
                                         (64, 1000))], FIVE),
    "bert_tasks": ("run task n", [*product(("pretrained", "frozen", "from scratch"), TWO_TASKS,
                                           bert_tasks.LABELS),
                                  *product(["100/0/0"], TWO_TASKS, [128])], FIVE),
    "clinic_alarms": ("program variant", 100, (0, 1)),
    "clinic_checks": ("program name", 35, FIVE),
    "copying": ("run", 3, (0, 1, 2)),
    "decoder_bugs": ("bug", [*decoder_study.BUGS], FIVE),
    "decoder_sublayers": ("", 1, FIVE),
    "decoding_search": ("steps smoothing", [*((n, 0.1) for n in decoding.LENGTHS),
                                            (200, 0.0), (400, 0.0)], FIVE),
    "digits": ("model size shifts", 39, FIVE),
    "digits_controls": ("model size steps shifts", 4, FIVE),
    "digits_longer": ("model size shifts", 1, FIVE),
    "embedding_scale": ("start", 6, FIVE),
    "embedding_scale_post": ("start", 3, FIVE),
    "encoder_bug": ("bug", [False, True], FIVE),
    "encoder_cloze": ("run", 2, FIVE),
    "encoder_layers": ("", 1, FIVE),
    "encoder_senses": ("word", 9, FIVE),
    "encoder_start": ("start", ["own", "equal", "shared"], FIVE),
    "experts": ("run", [*experts.RUNS], FIVE),
    "families": ("family", [*families.FAMILIES], FIVE),
    "feedforward_variants": ("variant", 7, FIVE),
    "following": ("", 1, FIVE),
    "gpt_epochs": ("run", 3, FIVE),
    "gpt_recipe": ("part lr", 16, FIVE),
    "head_lookups": ("ffn lookups heads", 16, FIVE),
    "head_nouns": ("", 1, FIVE),
    "head_roles": ("", 1, FIVE),
    "induction": ("kind", ["two layers", "one layer"], FIVE),
    "induction_places": ("size", [1.0, 0.02], FIVE),
    "memory_data": ("reader size lr", 4 * 5 + 2 + 2, FIVE),
    "memory_recall": ("reader distance lr", 6 * 5 + 2 * 2, FIVE),
    "memory_reversal": ("attention length", 2 * 3, FIVE),
    "positions_length": ("task scheme", 10, FIVE),
    "positions_reach": ("scheme length", 16, FIVE),
    "sampling_settings": ("family setting", [("human", 0), *(
        (family, value) for family, (_, values) in sampling.FAMILIES.items() for value in values
    )], FIVE),
    "scaling_law": ("width", 6, (0, 1, 2)),
    "trainability": ("norm depth lr warmup steps gain scaled", 120, None),
    "translator_ablations": ("run", 6, (0, 1, 2)),
    "translator_seeds": ("", 1, FIVE),
}  # fmt: skip
# Tables of another form, tested below; those without seeds are of one run.
OTHERS = {"clinic_severity", "recurrence_phrasebook", "todays_block", "families_rates"}
ONE_RUN = {"cost_gpu", "cost_ladder", "digits_rates", "families_longer", "feedforward_writers",
           "head_twins"}  # fmt: skip


def settings(rows, columns):
    """The seeds of each setting; rows without seed or setting, a reference say, are left out."""
    found = {}
    for row in rows:
        if "seed" in row and all(column in row for column in columns):
            setting = tuple(row[column] for column in columns)
            seeds = row["seed"] if isinstance(row["seed"], list) else [row["seed"]]
            found.setdefault(setting[0] if len(columns) == 1 else setting, []).extend(seeds)
    return found


def numbers(value):
    """Every number in a row, however deep."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for one in inner for number in numbers(one)]
    return [value] if isinstance(value, float) else []


def test_every_table_is_known_here_and_has_its_study():
    there = {path.stem for path in studies.FOLDER.glob("*.json")}
    assert there == {*TABLES} | OTHERS | ONE_RUN == set(available())


@pytest.mark.parametrize("name", [*TABLES, *sorted(OTHERS | ONE_RUN)])
def test_a_table_is_whole(name):
    table = studies.load(name)
    assert table["command"] == f"python -m tinytf_course.studies {name}"
    assert all(map(math.isfinite, numbers(table["rows"])))
    shares = ("test", "train", "right", "accuracy", "exact", "eval")
    for row in table["rows"]:
        for share in (row[key] for key in shares if isinstance(row.get(key), float)):
            assert 0 <= share <= 1
    if name in TABLES:
        columns, expected, seeds = TABLES[name]
        found = settings(table["rows"], columns.split())
        assert len(found) == (expected if isinstance(expected, int) else len(expected))
        assert isinstance(expected, int) or found.keys() == {*expected}
        assert seeds is None or all(sorted(one) == [*seeds] for one in found.values())


def test_norms_have_five_seeds_at_the_usual_rate():
    for row in studies.load("batch_norm")["rows"]:
        assert len(row["seed"]) == (5 if row["lr"] == 3e-3 else 3)


def test_best_rates_of_families_are_the_best_tried():
    tried = studies.load("families_rates")["rows"]
    for family, best in families.BEST.items():
        losses = {row["lr"]: row["loss"] for row in tried if row["family"] == family}
        assert losses[best] < min(losses.values()) + 0.005  # the best, or level with it


def test_experts_have_their_sizes():
    for row in studies.load("experts")["rows"]:
        run = experts.RUNS[row["run"]]
        assert row["parameters"] == count_parameters(experts.build(run))
        assert len(row["shares"]) == (4 if run.experts else 0)


def test_the_block_of_today_has_every_run():
    runs, rows = todays_block.LADDER | todays_block.ALONE, studies.load("todays_block")["rows"]
    usual, extra = todays_block.RATES[:1], todays_block.EXTRA
    expected = [*product(runs, FIVE, usual), *product(runs, [extra], todays_block.RATES)]
    assert sorted((row["run"], row["seed"], row["lr"]) for row in rows) == sorted(expected)
    last = [*todays_block.LADDER][-1]
    for row in rows:
        assert ("by_position" in row) == (row["run"] == last and row["seed"] != extra)


def test_translators_have_every_run():
    rows = studies.load("recurrence_phrasebook")["rows"]
    runs = [row for row in rows if row["part"] != "speed"]
    for name in ("one vector", "Bahdanau", "Transformer"):
        seeds = settings([row for row in runs if row["run"] == name], ["part"])
        assert {part: sorted(one) for part, one in seeds.items()} == {
            "run": [0, 1, 2, 3, 4], "longer": [0, 1]}  # fmt: skip
    assert len(rows) - len(runs) == 3
    for row in runs:
        assert row["curve"][-1]["step"] == row["steps"] == {"run": 800, "longer": 2400}[row["part"]]
        assert ("alignment" in row) == (row["run"] != "one vector")
        assert len(row["by_length_without_because"]) == 7
    assert len({(row["lr"], row["batch"]) for row in runs}) == 1
    assert max(r["parameters"] for r in runs) < 1.03 * min(r["parameters"] for r in runs)


def test_ways_to_search_add_up():
    for row in studies.load("decoding_search")["rows"]:
        assert len(row["ways"]) == 1 + sum(map(len, decoding.BEAMS.values()))
        for way in row["ways"]:
            if way["alpha"] == 0:
                right, wrong, lucky, other = way["kinds"]
                assert right + wrong + lucky + other == 150
                assert way["exact"] == pytest.approx((right + lucky) / 150, abs=1e-4)


def test_the_map_of_trainability_is_complete():
    table = studies.load("trainability")["rows"]
    grid = product(trainability.DEPTHS, trainability.RATES)
    variants = [("post", 1), ("post", 100), ("pre", 1), ("pre", 100), ("none", 1)]
    plain = [r for r in table if r["gain"] == 1 and not r["scaled"]]
    plain = [r for r in plain if r["steps"] == trainability.STEPS]
    usual = {(r["norm"], r["warmup"], r["depth"], r["lr"]): r["seed"] for r in plain}
    assert usual.keys() == {(*v, *cell) for v, cell in product(variants, [*grid])}
    assert all(seeds == [*FIVE] for seeds in usual.values())
    longer = [r for r in table if r["steps"] > 300]
    assert sorted(r["steps"] for r in longer) == [900, 900, 3000, 3000]
    assert len([r for r in table if r["gain"] == 0.1]) == 4
    assert len([r for r in table if r["scaled"]]) == 2 * len(
        [*product(trainability.DEPTHS, trainability.RATES)]
    )
    found = trainability.grid("none", scaled=True)
    assert found.shape == (4, 4, 5)
    cell = ("none", 16, 3e-3)
    (row,) = (r for r in table if r["scaled"] and (r["norm"], r["depth"], r["lr"]) == cell)
    assert found[3, 2].tolist() == pytest.approx(row["accuracy"])
    assert (trainability.grid("post", warmup=100) != trainability.grid("post")).any()
    with pytest.raises(KeyError):
        trainability.grid("pre", scaled=True)


def test_every_patient_has_its_twin():
    rows = studies.load("clinic_severity")["rows"]
    wanted = {(name, p.program) for name, p in PATIENTS.items()}
    wanted |= {("healthy", p.program) for p in PATIENTS.values()}
    steps = clinic.STEPS
    seen = {(r["patient"], r["program"], r["seed"], steps[r["program"]].index(r["steps"]))
            for r in rows}  # fmt: skip
    assert seen == {(*who, seed, size) for who in wanted for seed in FIVE for size in (0, 1)}
    assert all(len(gaps) == 5 for size in (0, 1) for gaps in clinic.damage(size).values())
    assert set(clinic.damage()) == set(PATIENTS)
    verdicts = {n: clinic.verdict(g, n in clinic.FLATTERING) for n, g in clinic.damage().items()}
    assert sum(v in ("deadly", "mild", "flatters") for v in verdicts.values()) >= 15
    assert verdicts["mask_meets_heads"] == verdicts["cache_off_by_one"] == "deadly"
    assert set(PATIENTS) <= set(checks.ward_table())
    assert checks.alarms()[1] >= 200


def test_stored_studies_of_the_decoder_are_read_by_mistake_and_by_sublayer():
    scores = decoder_study.bugs_scored("words, forced")
    assert list(scores) == list(decoder_study.BUGS)
    assert {len(runs) for runs in scores.values()} == {5}
    assert min(scores["mask inverted"]) > max(scores["right"])
    row, costs = studies.load("decoder_sublayers")["rows"][2], decoder_study.sublayer_costs()
    assert list(costs) == list(row["parts"])
    own, lost = (part["decoder cross-attention"] for part in (row["parts"], costs))
    assert lost["mean"][2] == own["mean"][1]
    assert lost["never had it"][2] == own["retrained"][1] - row["intact"][1]


def test_places_begin_where_the_table_says():
    rows, shipped = induction.induction_places([0], 0), studies.load("induction_places")["rows"]
    assert [(row["size"], row["curve"][0]["step"]) for row in rows] == [(1.0, 0), (0.02, 0)]
    assert rows[0]["curve"][0]["loss"] == pytest.approx(shipped[0]["curve"][0]["loss"], abs=1e-3)


# ---- how tables are made


def test_layers_that_start_alike_are_told():
    words = WordTokenizer(Phrasebook().source_words)
    own, equal, shared = (encoder.build(words, 0, start=s) for s in ("own", "equal", "shared"))
    assert abs(encoder_tables.likeness(own)) < 0.05
    assert encoder_tables.likeness(equal) == pytest.approx(1)
    sizes = [count_parameters(model.encoder) - 2 * encoder.WIDTH for model in (own, shared)]
    assert sizes[0] == 3 * sizes[1]  # but for the last norm


@pytest.fixture
def short(monkeypatch):
    """Studies of images with two sizes and a few steps."""
    monkeypatch.setattr(digits_tables, "SIZES", (20, 150))
    for module in (digits_study, digits_tables):
        monkeypatch.setattr(module, "STEPS", {False: 2, True: 3})


@needs_scikit_learn
def test_controls_train_without_shifts_for_as_many_steps(short, monkeypatch):
    monkeypatch.setattr(digits_study, "shift", None)  # would raise if called
    rows = digits_tables.controls([1])
    found = [(row["model"], row["size"]) for row in rows]
    assert found == [("encoder, shuffled", 150), ("encoder", 20)]
    assert all(row["steps"] == 3 and not row["shifts"] for row in rows)
    assert abs(rows[0]["near"]) < 0.3
    assert rows[0]["near"] != rows[0]["near_as_shuffled"]


@needs_scikit_learn
def test_a_small_study_of_images_has_every_row(short):
    rows = digits_tables.study([0])
    assert len(rows) == 2 * 9 + 3
    assert {row["model"] for row in rows} == {
        "nearest", "logistic", "MLP", "CNN", "encoder",
        "CNN, shuffled", "encoder, shuffled", "encoder, no positions",
    }  # fmt: skip
    assert sum("hidden" in row for row in rows if row["size"] == 150) == 1
    for name in ("MLP", "CNN", "encoder"):
        assert len({row["parameters"] for row in rows if row["model"] == name}) == 1
