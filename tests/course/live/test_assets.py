"""What the panels load: weights as scripts, the words' facts, the style sheet."""

import base64
import json
import re
import zlib

from tinytf_course.live import assets


def test_a_weights_script_holds_the_bytes_their_number_and_their_checksum():
    data = bytes(range(256)) * 3
    script = assets.weights_script("model", data)
    length, checksum, text = re.search(
        r'\["model"\] = \{ bytes: (\d+), adler32: (\d+), base64: "(.*)" \};\n$', script
    ).groups()
    assert base64.b64decode(text) == data
    assert (int(length), int(checksum)) == (len(data), zlib.adler32(data))


def test_the_facts_about_words_are_one_line_of_json():
    [facts] = re.fullmatch(r"tinytf\.phrasebook = (.*);\n", assets.phrasebook_script()).groups()
    facts = json.loads(facts)
    assert facts["pinyin"]["猫"] == "māo"
    assert facts["english"]["猫"] == "cat"
    assert facts["english"]["他"] == "he / him / his"
    assert set(facts["english"]) <= set(facts["pinyin"])
    assert facts["figures"]["3"] == "three"
    assert "march" in facts["months"]


def test_the_style_sheet_has_the_explorers_colours():
    sheet = assets.style()
    assert "/*light*/" not in sheet
    assert "/*dark*/" not in sheet
    assert ".tinytf-live .c20{" in sheet


def test_all_that_panels_load_is_written(tmp_path):
    assets.write_assets(tmp_path / "live")
    written = {path.name for path in (tmp_path / "live").iterdir()}
    assert written == {
        assets.STYLE, *(f"{name}.weights.js" for name in assets.WEIGHTS),
        *(name for names in assets.SCRIPTS.values() for name in names),
    }  # fmt: skip
