"""The mesh swap: a source face as a texture on the target's own face mesh. No network, numpy and OpenCV only."""
