"""A progress bar leaves one line."""

from tinytf_course import progress

# progress


def test_progress_leaves_one_line(capsys):
    bar = progress(range(3), "training")
    for i in bar:
        bar.set_postfix_str(f"loss {i}")
    assert bar.summary() == "training: 3 of 3, loss 2"
    with progress(total=9, desc="stopping") as bar:
        bar.update(4)
    assert bar.summary() == "stopping: 4 of 9"
    reading = progress(iter("ab"), "reading")
    assert list(reading) == ["a", "b"]
    assert reading.summary() == "reading: 2"
    assert capsys.readouterr().out == ""
