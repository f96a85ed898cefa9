"""Which points of the face mesh make up what.

The order of the points is that of MediaPipe's canonical face model (468 points, Apache-2.0); these index lists were
read off its mesh. "Left" and "right" are the viewer's. Contours run once around.
"""

FACE_OVAL = (
    *(10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377),
    *(152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109),
)
LIPS_OUTER = (
    *(61, 185, 40, 39, 37, 0, 267, 269, 270, 409),
    *(291, 375, 321, 405, 314, 17, 84, 181, 91, 146),
)
LIPS_INNER = (
    *(78, 191, 80, 81, 82, 13, 312, 311, 310, 415),
    *(308, 324, 318, 402, 317, 14, 87, 178, 88, 95),
)
LIP_PAIRS = (
    *((191, 95), (80, 88), (81, 178), (82, 87), (13, 14)),
    *((312, 317), (311, 402), (310, 318), (415, 324)),
)
"""Points of the upper and the lower lip that touch when the mouth is closed."""

LEFT_EYE = (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246)
RIGHT_EYE = (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466)
LEFT_BROW = (70, 63, 105, 66, 107, 55, 65, 52, 53, 46)
RIGHT_BROW = (300, 293, 334, 296, 336, 285, 295, 282, 283, 276)
LEFT_BROW_TOP = (107, 66, 105, 63, 70)
"""From the nose outwards; the right brow is its mirror image."""

FEATURES = (LEFT_EYE, RIGHT_EYE, LEFT_BROW, RIGHT_BROW, LIPS_OUTER)
"""What is not plain skin."""

NOSTRILS = ((240, 97, 2, 75, 60, 99), (460, 326, 2, 305, 290, 328))

SKIN_PATCHES = (
    (50, 101, 205, 187, 123),
    (280, 330, 425, 411, 352),
    (6, 197, 195, 5, 4),
    (9, 107, 336),
)
"""Cheeks, bridge of the nose, between the brows: skin on almost every face, glasses and beards included."""

MOUTH_GAP = (13, 14)
MOUTH_CORNERS = (78, 308)
LEFT_LID_RING = (130, 25, 110, 24, 23, 22, 26, 112, 243, 190, 56, 28, 27, 29, 30, 247)
RIGHT_LID_RING = (359, 255, 339, 254, 253, 252, 256, 341, 463, 414, 286, 258, 257, 259, 260, 467)
"""Round the lids, out to the crease."""

LEFT_LIDS = (159, 145, 33, 133)
RIGHT_LIDS = (386, 374, 263, 362)
"""Upper lid, lower lid, outer corner, inner corner."""

EYES = ((LEFT_EYE, LEFT_LID_RING, LEFT_LIDS), (RIGHT_EYE, RIGHT_LID_RING, RIGHT_LIDS))
"""Contour of the eyeball, ring round the lids, and the four points that tell how far the eye is open."""

STABLE = (
    *(33, 133, 263, 362, 168, 6, 197, 195, 5, 4, 1, 98, 327, 2),
    *(127, 356, 234, 454, 10, 151, 9, 8),
)
"""Points that expression hardly moves; they carry the rigid pose."""
