"""From the picture through a swap network and back: alignment, masks and paste with networks whose result is known."""

from dataclasses import replace

import numpy as np
import pytest

from app.core.geometry import template_points, transform_points
from app.core.mesh_topology import load_topology
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import Face, Frame, Identity, IdentityId, SourceView, TrackId
from app.faces.landmarks import face_from_landmarks
from app.pipeline.stages import processed
from app.processors.face_swapper import PROCESSOR, Options
from tests.conftest import MakeFrame
from tests.processors.neural.fakes import Swap, SwapZoo, echoed, painted

RECOGNIZER = "arcface-w600k-r50"


def source(*color: float) -> Identity:
    vector = np.zeros(512, np.float32)
    vector[:3] = color
    vector[3] = max(0.0, 1 - float(np.square(vector).sum())) ** 0.5
    view = SourceView(
        crop=np.zeros((4, 4, 3), np.uint8),
        landmarks=np.zeros((478, 3), np.float32),
        normed_embedding=np.zeros(128, np.float32),
        embeddings={RECOGNIZER: vector},
    )
    return Identity(
        id=IdentityId(str(color)), label="x", views=(view,), normed_embedding=view.normed_embedding
    )


def face_at(x: float, y: float, size_px: float, *, roll_deg: float = 0, who: Identity) -> Face:
    vertices = load_topology().vertices * np.float32([1, -1, -1])
    roll, scale = np.deg2rad(roll_deg), size_px / np.ptp(vertices[:, 1])
    turn = scale * np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    points = np.column_stack([vertices[:, :2] @ turn.T + [x, y], vertices[:, 2] * scale])
    landmarks = np.concatenate([points, np.repeat(points[:1], 10, axis=0)]).astype(np.float32)
    face = face_from_landmarks(landmarks, 0.9)
    return replace(face, identity=who, track_id=TrackId(int(x)))


def swapped(swap: Swap, *frames: Frame, model: str = "inswapper-128") -> tuple[Frame, ...]:
    zoo = SwapZoo(swap)
    options = Options(model=model)
    crop = PROCESSOR.needs(options, zoo).crop
    assert crop is not None
    (window,) = processed(PROCESSOR.build(options, zoo), crop)(iter([frames]))
    return window


def smooth(h: int = 480, w: int = 640) -> np.ndarray:
    y, x = np.mgrid[:h, :w].astype(np.float32)
    waves = [np.sin(x / 90), np.cos(y / 80), np.sin((x + y) / 110)]
    return np.stack([128 + 60 * wave for wave in waves], axis=-1).round().astype(np.uint8)


@pytest.mark.parametrize("model", ["inswapper-128", "hyperswap-1a-256"])
@pytest.mark.parametrize("roll_deg", [0, 25, 180], ids=["upright", "tilted", "upside down"])
def test_a_network_that_changes_nothing_leaves_the_picture_within_a_code_value(
    make_frame: MakeFrame, roll_deg: float, model: str
) -> None:
    image = smooth()
    face = face_at(320, 240, 150, roll_deg=roll_deg, who=source(0.5))
    (out,) = swapped(echoed, make_frame(image=image, faces=(face,)), model=model)
    got = out.picture.read(out.picture.box).astype(int)
    assert out.faces_swapped == 1
    assert np.abs(got - image).max() <= 1


@pytest.mark.parametrize("roll_deg", [0, 25], ids=["upright", "tilted"])
def test_a_painted_face_is_where_the_face_is_and_nowhere_else(
    make_frame: MakeFrame, roll_deg: float
) -> None:
    face = face_at(320, 240, 150, roll_deg=roll_deg, who=source(0.9, 0.1, 0.2))
    (out,) = swapped(painted, make_frame(image=smooth(), faces=(face,)))
    got = out.picture.read(out.picture.box).astype(int)
    inner = np.rint(face.kps).astype(int)
    assert (
        np.abs(got[inner[:, 1], inner[:, 0]] - np.rint(np.float32([0.9, 0.1, 0.2]) * 255)).max()
        <= 2
    )
    changed = np.argwhere((got != smooth()).any(2))[:, ::-1]
    # In the face's own upright square: the box of its points and an eighth around it.
    roll = np.deg2rad(roll_deg)
    level = np.float32([[np.cos(roll), np.sin(roll), 0], [-np.sin(roll), np.cos(roll), 0]])
    assert face.landmarks is not None
    own = transform_points(face.landmarks[:, :2], level)
    there = transform_points(changed.astype(np.float32), level)
    pad = 0.12 * np.ptp(own, axis=0).max() + 2
    assert (there.min(0) >= own.min(0) - pad).all() and (there.max(0) <= own.max(0) + pad).all()


def test_four_people_of_many_frames_each_get_their_own_face(make_frame: MakeFrame) -> None:
    colors = [(0.9, 0, 0), (0, 0.9, 0), (0, 0, 0.9), (0.6, 0.6, 0)]
    people = [source(*color) for color in colors]
    places = [(90, 100), (300, 120), (520, 90), (320, 360)]
    frames = [
        make_frame(
            index=index,
            image=smooth(),
            faces=tuple(
                face_at(x + 3 * index, y, 90 + 5 * index, who=who)
                for (x, y), who in zip(places, people, strict=True)
            ),
        )
        for index in range(3)
    ]
    for index, out in enumerate(swapped(painted, *frames)):
        assert out.faces_swapped == 4
        for (x, y), color in zip(places, colors, strict=True):
            got = out.picture.read(out.picture.box)[y, x + 3 * index].astype(float)
            assert np.abs(got - np.float32(color) * 255).max() <= 2


@pytest.mark.parametrize("name", ["yuv420p", "yuv422p10le", "yuv444p", "rgb48le", "gray", "rgba"])
def test_every_kind_of_picture_goes_through_the_same_door(make_frame: MakeFrame, name: str) -> None:
    fmt = PIXEL_FORMATS[name]
    ramp = np.linspace(0.3, 0.6, 300)[None, :] * ((1 << fmt.bits) - 1)
    planes = tuple(
        np.broadcast_to(
            ramp[:, : shape[1], None][:, :, 0] if len(shape) == 2 else ramp[:, : shape[1], None],
            shape,
        ).astype(fmt.dtype)
        for shape in fmt.plane_shapes((300, 240))
    )
    face = face_at(150, 120, 100, who=source(0.7, 0.5, 0.4))
    frame = replace(make_frame(faces=(face,)), picture=Picture(planes, fmt))
    (kept,) = swapped(echoed, frame)
    for before, after in zip(planes, kept.picture.planes, strict=True):
        step = max(1, ((1 << fmt.bits) - 1) // 255)
        assert np.abs(before.astype(int) - after.astype(int)).max() <= step
    (out,) = swapped(painted, frame)
    x, y = np.rint(face.kps[2]).astype(int)
    got = out.picture.read(out.picture.box)[y, x].astype(int)
    wanted = [140, 140, 140] if fmt.family == "gray" else [178, 128, 102]
    assert np.abs(got - wanted).max() <= 4
    assert np.array_equal(out.picture.planes[0][:20], planes[0][:20])


def test_the_five_points_lie_on_the_networks_template(make_frame: MakeFrame) -> None:
    seen: list[np.ndarray] = []

    def looking(target: np.ndarray, _: np.ndarray) -> np.ndarray:
        seen.append(target)
        return target

    face = face_at(200, 200, 180, roll_deg=15, who=source(0.5))
    image = np.zeros((400, 400, 3), np.uint8)
    for x, y in np.rint(face.kps).astype(int):
        image[y - 4 : y + 5, x - 4 : x + 5] = 255
    swapped(looking, make_frame(image=image, faces=(face,)))
    for x, y in np.rint(template_points("arcface_128", 128)).astype(int):
        # The canonical face is not the template's, so that a similarity comes near, not on it.
        assert seen[0][0, :, max(y - 5, 0) : y + 6, x - 5 : x + 6].max() > 0.9
