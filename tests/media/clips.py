"""Small videos made with PyAV, since no video can be expected to lie about on a machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Sound:
    """One audio track of a made clip: a tone, silent up to `silent_s`."""

    codec: str = "aac"
    seconds: float = 1.0
    start_s: float = 0.0
    silent_s: float = 0.0
    layout: str = "stereo"
    rate: int = 48_000
    language: str = "eng"


@dataclass(frozen=True, kw_only=True)
class Clip:
    """What a made clip is like; each frame is a moving gradient with noise, from a fixed seed."""

    size_wh: tuple[int, int] = (64, 48)
    pixel_format: str = "yuv420p"
    codec: str = "libx264"
    frames: int = 25
    rate: Fraction = Fraction(25)
    time_base: Fraction = Fraction(1, 12_800)
    pts: Sequence[int] | None = None
    options: dict[str, str] = field(default_factory=lambda: {"crf": "18", "preset": "ultrafast"})
    container: str | None = None
    container_options: dict[str, str] = field(default_factory=dict)
    rotation_deg: int = 0
    matrix: Sequence[int] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    sounds: tuple[Sound, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def times(self) -> Sequence[int]:
        """Presentation times in units of `time_base`."""
        step = round(1 / (self.rate * self.time_base))
        return self.pts or [index * step for index in range(self.frames)]


def put_before_each_frame(unit: bytes, source: Path, path: Path) -> None:
    """Copy a video whose units have their length before them (H.264, HEVC in MP4), one more before each frame."""
    with av.open(str(source)) as before, av.open(str(path), "w") as after:
        stream = before.streams.video[0]
        target = after.add_stream_from_template(stream)
        for packet in before.demux(stream):
            if packet.size:
                told = av.Packet(len(unit).to_bytes(4, "big") + unit + bytes(packet))
                told.pts, told.dts, told.time_base = packet.pts, packet.dts, packet.time_base
                told.is_keyframe, told.stream = packet.is_keyframe, target
                after.mux(told)


def noise_frame(size_wh: tuple[int, int], pixel_format: str, seed: int) -> VideoFrame:
    """A frame whose every sample is random within the depth of its format, but smooth enough to compress."""
    frame = VideoFrame(*size_wh, pixel_format)
    bits = frame.format.components[0].bits
    dtype = np.uint16 if bits > 8 else np.uint8
    rng = np.random.default_rng(seed)
    for plane in frame.planes:
        samples: NDArray[Any] = np.frombuffer(plane, dtype)
        ramp = np.arange(samples.size) * 7 // 97 + seed * 5
        samples[:] = (ramp + rng.integers(0, 8, samples.size)) % (1 << bits)
    return frame


def write_clip(path: Path, clip: Clip) -> None:
    with av.open(
        str(path), "w", format=clip.container, container_options=clip.container_options
    ) as output:
        output.metadata.update(clip.metadata)
        stream = output.add_stream(clip.codec, rate=clip.rate, options=clip.options)
        context = stream.codec_context
        context.width, context.height = clip.size_wh
        context.pix_fmt = clip.pixel_format
        context.time_base = stream.time_base = clip.time_base
        for name, value in clip.context.items():
            setattr(context, name, value)
        if clip.rotation_deg:
            stream.set_display_rotation(clip.rotation_deg)
        if clip.matrix is not None:
            stream.set_display_matrix(clip.matrix)
        tracks = [_track(output, sound) for sound in clip.sounds]
        for track, sound in zip(tracks, clip.sounds, strict=True):
            for frame in tone(sound):
                output.mux(track.encode(frame))
            output.mux(track.encode(None))
        for index, pts in enumerate(clip.times):
            frame = noise_frame(clip.size_wh, clip.pixel_format, index)
            frame.pts, frame.time_base = pts, clip.time_base
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def _track(output: Any, sound: Sound) -> Any:
    track = output.add_stream(sound.codec, rate=sound.rate)
    track.codec_context.layout = sound.layout
    track.metadata["language"] = sound.language
    return track


def tone(sound: Sound) -> list[AudioFrame]:
    """A sound's samples, as one frame."""
    count = round(sound.seconds * sound.rate)
    wave = (np.sin(np.arange(count) * 0.05) * 8000).astype(np.int16)
    wave[: round(sound.silent_s * sound.rate)] = 0
    frame = AudioFrame.from_ndarray(wave[None], format="s16", layout="mono")
    frame.sample_rate = sound.rate
    frame.time_base = Fraction(1, sound.rate)
    frame.pts = round(sound.start_s * sound.rate)
    return [frame]


def stored_frames(path: Path) -> list[VideoFrame]:
    """The frames of a file as plain PyAV decodes them."""
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def stored_packets(path: Path, kind: str = "audio") -> list[list[tuple[Fraction, bytes]]]:
    """Time and bytes of every packet of the streams of one kind."""
    with av.open(str(path)) as container:
        streams = [stream for stream in container.streams if stream.type == kind]
        found: dict[int, list[tuple[Fraction, bytes]]] = {each.index: [] for each in streams}
        for packet in container.demux(streams) if streams else ():
            if packet.size:
                found[packet.stream_index].append((packet.pts * packet.time_base, bytes(packet)))
    return list(found.values())
