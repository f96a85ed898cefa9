"""Receiving an upload straight into the library, as a raw body or as a form: never held in memory, never kept twice."""

from collections.abc import AsyncIterator

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from app.core.errors import BadMultipartError, BadNameError
from app.jobs.library import MediaItem, Upload
from app.service import Studio

_WRITE_BYTES = 1 << 20
_MAX_BOUNDARY_BYTES = 70
_MAX_PARTS = 16
_MAX_HEADER_BYTES = 16 << 10
_MAX_FIELD_BYTES = 64 << 10


async def receive_media(request: Request, studio: Studio, *, name: str) -> MediaItem:
    """Receive the one file of a request.

    Args:
        request: With a form that holds one file, or with the file as its body.
        studio: Where it goes.
        name: What a raw body is called.

    Raises:
        BadMultipartError: The form is broken, or holds no or several files.
        AppError: As `Studio.add_media`.
    """
    content_type, parameters = parse_options_header(request.headers.get("content-type"))
    if content_type != b"multipart/form-data":
        return await _receive(request.stream(), studio, name)
    form = _Form(parameters.get(b"boundary", b""))
    chunks = form.file_chunks(request.stream())
    # The name stands before the file's first byte.
    first = await anext(chunks, b"")
    return await _receive(_chained(first, chunks), studio, form.file_name())


async def _receive(chunks: AsyncIterator[bytes], studio: Studio, name: str) -> MediaItem:
    with studio.receive_media(name) as upload:
        await _pour(chunks, upload)
        return await run_in_threadpool(upload.keep)


async def _pour(chunks: AsyncIterator[bytes], upload: Upload) -> None:
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        if len(held) >= _WRITE_BYTES:
            await run_in_threadpool(upload.write, bytes(held))
            held.clear()
    await run_in_threadpool(upload.write, bytes(held))


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


class _Form:
    """A form being received; fields that are no file are skipped."""

    def __init__(self, boundary: bytes) -> None:
        if not 0 < len(boundary) <= _MAX_BOUNDARY_BYTES:
            raise BadMultipartError(
                f"the form's boundary has {len(boundary)} bytes; 1 to {_MAX_BOUNDARY_BYTES} are taken"
            )
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._header_name_goes_on,
                "on_header_value": self._header_value_goes_on,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data_goes_on,
                "on_end": self._form_ends,
            },
        )
        self._file_name: str | None = None
        self._is_in_file = False
        self._has_ended = False
        self._parts = 0
        self._field_bytes = 0
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._file_data = bytearray()

    async def file_chunks(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The file's bytes, as they arrive.

        Raises:
            BadMultipartError: The form is broken, or holds several files.
        """
        async for chunk in stream:
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise BadMultipartError("the form cannot be read") from error
            if self._file_data:
                yield bytes(self._file_data)
                self._file_data.clear()
        if not self._has_ended:
            raise BadMultipartError("the form is cut off: its last boundary is missing")

    def file_name(self) -> str:
        """What the file is called.

        Raises:
            BadMultipartError: The form has no file.
        """
        if self._file_name is None:
            raise BadMultipartError("the form has no file; send one in a field with a file name")
        return self._file_name

    def _part_begins(self) -> None:
        self._parts += 1
        self._disposition = b""
        self._is_in_file = False
        if self._parts > _MAX_PARTS:
            raise BadMultipartError(f"the form has more than {_MAX_PARTS} parts; send one file")

    def _header_name_goes_on(self, data: bytes, start: int, end: int) -> None:
        self._grow_header(0, data[start:end])

    def _header_value_goes_on(self, data: bytes, start: int, end: int) -> None:
        self._grow_header(1, data[start:end])

    def _grow_header(self, which: int, data: bytes) -> None:
        self._header[which].extend(data)
        if len(self._header[which]) > _MAX_HEADER_BYTES:
            raise BadMultipartError(f"a header of the form has more than {_MAX_HEADER_BYTES} bytes")

    def _header_ends(self) -> None:
        if bytes(self._header[0]).lower() == b"content-disposition":
            self._disposition = bytes(self._header[1])
        for part in self._header:
            part.clear()

    def _headers_end(self) -> None:
        _, parameters = parse_options_header(self._disposition)
        raw = parameters.get(b"filename")
        if raw is None:
            return
        if self._file_name is not None:
            raise BadMultipartError("the form holds several files; send one a request")
        try:
            self._file_name = raw.decode()
        except UnicodeDecodeError as error:
            raise BadNameError("file name: it is not UTF-8; rename the file") from error
        self._is_in_file = True

    def _data_goes_on(self, data: bytes, start: int, end: int) -> None:
        if self._is_in_file:
            self._file_data += data[start:end]
            return
        self._field_bytes += end - start
        if self._field_bytes > _MAX_FIELD_BYTES:
            raise BadMultipartError("the form's other fields are too long; send one file")

    def _form_ends(self) -> None:
        self._has_ended = True
