"""The digits, their forms and their shifts; and the parts of the study that compares models."""

import pytest
import torch
from support import needs_scikit_learn

from tinytf.metrics.counting import count_parameters
from tinytf.related.vit import ImageClassifier, ImageConfig
from tinytf_course.lessons.digits import Digits, sample, split
from tinytf_course.studies import digits as study

pytestmark = needs_scikit_learn


def test_models_are_of_one_size():
    sizes = [count_parameters(study.MODELS[name]()) for name in ("encoder", "CNN", "MLP")]
    assert max(sizes) / min(sizes) < 1.02
    assert count_parameters(study.NoPositions(ImageConfig())) == sizes[0] - 17 * 32


def test_training_repeats_itself_and_learns(monkeypatch):
    pool, test = split(0)
    data = sample(pool, 50)
    one, two = (study.train("CNN", data, test, steps=8) for _ in range(2))
    assert (one.accuracy, one.loss) == (two.accuracy, two.loss)
    learned = study.train("CNN", data, test, steps=60)
    assert learned.accuracy > 0.6
    assert learned.loss < 1
    with pytest.raises(KeyError, match="RNN"):
        study.train("RNN", data, test)


def test_every_image_is_met_once_before_any_is_met_again():
    rows = list(study._batches(100, 5, torch.Generator().manual_seed(0)))
    assert [len(r) for r in rows] == [study.BATCH] * 5
    assert sorted(torch.cat(rows)[:100].tolist()) == list(range(100))
    few = list(study._batches(20, 3, torch.Generator().manual_seed(0)))
    assert all(sorted(r.tolist()) == list(range(20)) for r in few)


def test_nearest_by_hand():
    pool, _ = split(0)
    data = sample(pool, 20)
    assert study.nearest(data, data) == 1
    moved = Digits(data.images.roll(1, dims=3), data.labels, data.forms)
    exact = (data.images[..., -1] == -1).all(dim=(1, 2)).float().mean().item()
    assert study.nearest(data, moved, shifts=True) >= exact
    upside_down = Digits(data.images, (data.labels + 1) % 10, data.forms)
    assert study.nearest(data, upside_down) == 0


def test_shuffles_move_patches_and_nothing_else():
    image = torch.arange(64.0).view(1, 1, 8, 8)
    assert torch.equal(study.shuffled(image, torch.arange(16)), image)
    order = study.patch_order(1)
    assert torch.equal(study.shuffled(study.shuffled(image, order), order.argsort()), image)
    rows = torch.arange(16).roll(4)  # each row of patches one down
    assert torch.equal(study.shuffled(image, rows), image.roll(2, dims=2))


def test_nearness_tells_a_grid_from_a_shuffled_one():
    at = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    similar = torch.exp(-torch.cdist(at, at))
    order = study.patch_order(0)
    assert study.nearness(similar) > 0.2
    assert abs(study.nearness(similar[order][:, order])) < 0.1
    assert study.neighbours(4).sum() == 48


def test_occlusion_hides_what_it_says():
    scores = torch.rand(3, 16)
    visible = study.hide(scores, 4)
    assert visible.sum(dim=1).tolist() == [12] * 3
    for row in range(3):
        assert scores[row][~visible[row]].min() > scores[row][visible[row]].max()
    model = ImageClassifier(ImageConfig())
    torch.nn.init.normal_(model.output.weight)
    _, test = split(0)
    found = study.occlusions(model, test)
    assert len(found) == 8
    assert all(0 <= score <= 1 for score in found.values())
    looks = study.class_attention(model, test.images[:6])
    assert looks.shape == (6, 2, 4, 16)
    assert (looks.sum(dim=-1) < 1).all()


def test_missed_is_what_the_answer_loses_without_a_patch():
    model = ImageClassifier(ImageConfig(d_model=8, num_heads=2, num_layers=1, num_classes=3))
    torch.nn.init.normal_(model.output.weight)
    _, test = split(0)
    images = test.images[:5]
    found = study.missed(model, images)
    assert found.shape == (5, 16)
    assert found.std() > 0.01
    with torch.no_grad():
        for row, image in enumerate(images[:, None]):
            whole = model(image).softmax(-1)[0]
            visible = torch.arange(16)[None] != 7
            left = model(image, visible).softmax(-1)[0, whole.argmax()]
            assert found[row, 7].item() == pytest.approx(
                (whole.max() / left).log().item(), abs=1e-5
            )
