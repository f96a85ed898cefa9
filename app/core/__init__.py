"""The nouns that everything else speaks: pictures, frames, faces, errors. numpy and OpenCV only."""
