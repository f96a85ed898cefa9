"""Files: what they are, their pictures and streams, in and out. The only home of PyAV and Pillow."""
