"""Where the five points of a face belong in a crop."""

import numpy as np
import pytest

from app.core.geometry import template_points


@pytest.mark.parametrize(
    ("name", "eyes_and_nose"),
    [
        # As FaceFusion's table of normalized templates has them.
        pytest.param(
            "arcface_112",
            [[0.34191607, 0.46157411], [0.65653393, 0.45983393], [0.500225, 0.64050536]],
            id="arcface_112",
        ),
        pytest.param(
            "arcface_128",
            [[0.36167656, 0.40387734], [0.63696719, 0.40235469], [0.50019687, 0.56044219]],
            id="arcface_128",
        ),
        pytest.param(
            "ffhq_512",
            [[0.37691676, 0.46864664], [0.62285697, 0.46912813], [0.50123859, 0.61331904]],
            id="ffhq_512",
        ),
    ],
)
def test_templates_are_those_that_networks_were_trained_with(
    name: str, eyes_and_nose: list[list[float]]
) -> None:
    assert np.allclose(template_points(name, 1)[:3], eyes_and_nose, atol=2e-6)
    assert np.allclose(template_points(name, 256), template_points(name, 128) * 2)
