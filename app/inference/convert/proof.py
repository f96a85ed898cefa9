"""Proves, when a model is installed, that its file computes what the original does.

What is compared with what:

- a batch of pictures with the same pictures one by one, for every model;
- YuNet with OpenCV's own detector on the original, quantized file, to half a pixel;
- SFace with OpenCV's own runtime on the original file, by the cosine of the embeddings;
- the attention mesh with landmarks that the official MediaPipe runtime gave for the same crop;
- an upscaler with its own input: shrunk again, the result must look like it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import cv2
import numpy as np

from app.core.errors import ConversionError, ModelError
from app.core.types import FloatArray, RgbImage
from app.inference.convert import proof_face
from app.inference.cores import usable_cores
from app.inference.feeds import picture_feed
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU
from app.inference.spec import ModelSpec

_LANDMARKS = Path(__file__).parent / "data" / "proof_landmarks.npz"

_BATCH = 3
_FREE_SIDE_PX = 128
_UPSCALER_SIDE_PX = 16

_MAX_BATCH_DIFFERENCE = 1e-4
_MAX_DETECTION_ERROR_PX = 0.5
_MIN_COSINE = 0.9999
_MAX_LANDMARK_ERROR = 0.002
"""Of the face's width. The conversion reaches 0.00024 at its worst point; weights off by 2 % fail."""
_MIN_SHRUNK_PSNR_DB = 25.0

Sources = Mapping[str, bytes]
Proof = Callable[[ModelSpec, OrtSession, Sources], None]


def prove(spec: ModelSpec, content: bytes, sources: Sources) -> None:
    """Run a model's file on a drawn face and compare.

    Args:
        spec: The manifest's entry; its adapter says what the outputs mean.
        content: The ONNX file to prove.
        sources: The original files, by name.

    Raises:
        ConversionError: The file does not open, does not keep its input contract, or computes something else.
    """
    try:
        session = _opened(spec, content)
        _prove_batch(spec, session)
        if spec.adapter in _PROOFS:
            _PROOFS[spec.adapter](spec, session, sources)
    except ConversionError:
        raise
    except ModelError as error:
        raise ConversionError(f"{spec.id}: the proof could not run: {error.message}") from error


def check_inputs(spec: ModelSpec, content: bytes) -> None:
    """Refuse a file that has not the inputs that its entry names.

    Raises:
        ConversionError: It has others, or does not open.
    """
    try:
        _opened(spec, content)
    except ConversionError:
        raise
    except ModelError as error:
        raise ConversionError(f"{spec.id}: the file does not open: {error.message}") from error


def _opened(spec: ModelSpec, content: bytes) -> OrtSession:
    session = OrtSession(spec.id, content, provider=CPU, threads=usable_cores())
    wanted = {spec.input.name, *spec.other_inputs}
    if set(session.input_names) != wanted:
        raise ConversionError(
            f"{spec.id}: inputs are {', '.join(session.input_names)}, "
            f"the manifest says {', '.join(sorted(wanted))}"
        )
    return session


def _prove_batch(spec: ModelSpec, session: OrtSession) -> None:
    """A batch of n equals n batches of one."""
    pictures = _variants(_side(spec))
    together = _run(spec, session, pictures)
    for index in range(_BATCH):
        alone = _run(spec, session, pictures[index : index + 1])
        for name, values in alone.items():
            _require_equal(f"{spec.id}: output {name} in a batch", together[name][index], values[0])


def _prove_yunet(spec: ModelSpec, session: OrtSession, sources: Sources) -> None:
    face = proof_face.draw()
    with _quiet_opencv():
        detector = cv2.FaceDetectorYN.create(
            "onnx", _bytes_of(sources), np.zeros(0, np.uint8), face.shape[1::-1]
        )
        _, rows = detector.detect(np.ascontiguousarray(face[..., ::-1]))
    if rows is None or len(rows) != 1:
        raise ConversionError(f"{spec.id}: OpenCV's detector does not find the drawn face")
    found = _best_detection(_run(spec, session, face[None]), face.shape[1])
    error_px = float(np.abs(found - rows[0, :14]).max())
    _require(
        error_px <= _MAX_DETECTION_ERROR_PX,
        f"{spec.id}: differs from OpenCV's detector by {error_px:.3f} px, "
        f"wanted {_MAX_DETECTION_ERROR_PX}",
    )


def _best_detection(outputs: Mapping[str, FloatArray], width_px: int) -> FloatArray:
    """The most certain cell's `x, y, w, h` and five points, `(14,)`, pixels.

    Source: the detector's published decoding; see `app.faces.detector` for the whole of it.
    """
    scores = {s: outputs[f"cls_{s}"][0, :, 0] * outputs[f"obj_{s}"][0, :, 0] for s in (8, 16, 32)}
    stride = max(scores, key=lambda s: float(scores[s].max()))
    cell = int(scores[stride].argmax())
    corner = np.array([cell % (width_px // stride), cell // (width_px // stride)], np.float32)
    box = outputs[f"bbox_{stride}"][0, cell]
    points = outputs[f"kps_{stride}"][0, cell].reshape(5, 2)
    size = np.exp(box[2:]) * stride
    top_left = (corner + box[:2]) * stride - size / 2
    return np.concatenate([top_left, size, ((corner + points) * stride).ravel()])


def _prove_sface(spec: ModelSpec, session: OrtSession, sources: Sources) -> None:
    crop = _variants(_side(spec))[:1]
    with _quiet_opencv():
        original = cv2.dnn.readNetFromONNX(_bytes_of(sources))
        original.setInput(picture_feed(crop, spec.input), spec.input.name)
        wanted = np.asarray(original.forward(), np.float32).ravel()
    (got,) = (values.ravel() for values in _run(spec, session, crop).values())
    cosine = float(got @ wanted / (np.linalg.norm(got) * np.linalg.norm(wanted)))
    _require(
        cosine > _MIN_COSINE,
        f"{spec.id}: cosine to OpenCV's embedding is {cosine:.6f}, wanted {_MIN_COSINE}",
    )


def _prove_attention_mesh(spec: ModelSpec, session: OrtSession, sources: Sources) -> None:
    """Land on the official landmarks; `sources` cannot be run by any locked dependency."""
    del sources
    with np.load(_LANDMARKS, allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    affine = stored.pop("affine")
    side = _side(spec)
    crop = cv2.warpAffine(proof_face.draw(), affine, (side, side), flags=cv2.INTER_LINEAR)
    outputs = _run(spec, session, np.asarray(crop, np.uint8)[None])
    face_width_px = float(np.ptp(outputs["mesh"][0, :, 0]))
    for name, points in stored.items():
        offsets = np.linalg.norm(outputs[name][0, :, :2] - points, axis=1)
        error = float(np.nanmax(offsets)) / face_width_px
        _require(
            error <= _MAX_LANDMARK_ERROR,
            f"{spec.id}: {name} is off by {error:.2%} of the face's width, "
            f"wanted {_MAX_LANDMARK_ERROR:.2%}",
        )


def _prove_upscaler(spec: ModelSpec, session: OrtSession, sources: Sources) -> None:
    del sources
    pictures = _variants(_side(spec))[:1]
    (values,) = _run(spec, session, pictures).values()
    side = _side(spec)
    wanted_shape = (1, 3, side * spec.scale, side * spec.scale)
    _require(
        values.shape == wanted_shape, f"{spec.id}: gives {values.shape}, wanted {wanted_shape}"
    )
    enlarged = np.ascontiguousarray(values[0].transpose(1, 2, 0))
    shrunk = cv2.resize(enlarged, (side, side), interpolation=cv2.INTER_AREA)
    noise = float(np.mean((shrunk - pictures[0].astype(np.float32) / 255) ** 2))
    psnr_db = -10 * float(np.log10(noise + 1e-12))
    _require(
        psnr_db > _MIN_SHRUNK_PSNR_DB,
        f"{spec.id}: its result, shrunk again, is {psnr_db:.1f} dB from the input, "
        f"wanted {_MIN_SHRUNK_PSNR_DB}",
    )


_PROOFS: Mapping[str, Proof] = MappingProxyType(
    {
        "yunet": _prove_yunet,
        "sface": _prove_sface,
        "attention_mesh": _prove_attention_mesh,
        "upscaler": _prove_upscaler,
    }
)
"""By the manifest's `adapter`; another adapter is proven by its batch alone."""


def _side(spec: ModelSpec) -> int:
    if spec.crop is not None:
        return spec.crop.size
    return _UPSCALER_SIDE_PX if spec.task == "frame_upscale" else _FREE_SIDE_PX


def _variants(side_px: int) -> RgbImage:
    """The drawn face, mirrored, and darkened: `(3, side, side, 3)`."""
    face = np.asarray(
        cv2.resize(proof_face.draw(), (side_px, side_px), interpolation=cv2.INTER_AREA)
    )
    return np.stack([face, face[:, ::-1], face // 2]).astype(np.uint8)


def _run(spec: ModelSpec, session: OrtSession, pictures: RgbImage) -> Mapping[str, FloatArray]:
    outputs = session.run({spec.input.name: picture_feed(pictures, spec.input)})
    return {name: np.asarray(values, np.float32) for name, values in outputs.items()}


def _bytes_of(sources: Sources) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The one original file, as OpenCV takes it."""
    (content,) = sources.values()
    return np.frombuffer(content, np.uint8)


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise ConversionError(f"{complaint}; the rewrite is wrong, nothing was installed")


def _require_equal(what: str, got: FloatArray, wanted: FloatArray) -> None:
    """Compare two outputs, relative to the largest value."""
    difference = float(np.abs(got - wanted).max()) / max(float(np.abs(wanted).max()), 1e-6)
    _require(
        difference <= _MAX_BATCH_DIFFERENCE,
        f"{what} differs by {difference:.2e}, wanted {_MAX_BATCH_DIFFERENCE:.0e}",
    )


@contextmanager
def _quiet_opencv() -> Iterator[None]:
    """Keep OpenCV's remarks on its own engines from the terminal."""
    level = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)
    try:
        yield
    finally:
        cv2.utils.logging.setLogLevel(level)
