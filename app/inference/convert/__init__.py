"""Rewrites of model files into ONNX with a free batch dimension, made once when a model is installed.

Every converter has the same shape: the bytes of its source files by file name in, the bytes of one ONNX file
out. The same sources give the same bytes wherever it runs, so the manifest can pin the hash of the result.
"""
