"""What a person can choose of an output's encoding, for doors that must not load any library."""

from typing import Literal

CodecChoice = Literal["auto", "like-input", "h264", "hevc", "av1", "vp9", "prores", "ffv1"]
"""`auto` plays everywhere unless the input needs more; `like-input` is the input's own where possible."""
