"""Faces in pictures: find, measure, follow, align, put back."""
