"""XMP packets: read what others wrote without trusting it, keep what still holds, add our label.

XMP is RDF in XML (ISO 16684-1). A packet comes from a stranger's file, so it is scanned before any tree is built:
a DOCTYPE (the door of entity expansion and of outside references) and deep nesting are refused.
"""

from collections.abc import Iterator
from typing import NoReturn
from xml.dom.minidom import Attr, Document, Element, Text, parseString
from xml.parsers import expat

from app.core.errors import LabelError

AIGC_NS = "http://www.tc260.org.cn/ns/AIGC/1.0/"
IPTC_EXT_NS = "http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
MAX_PACKET_BYTES = 60_000
"""A JPEG segment holds 65 533 bytes, its XMP header included; longer packets would need a second kind of storage."""

_RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_META_NS = "adobe:ns:meta/"
_XMLNS_NS = "http://www.w3.org/2000/xmlns/"
_MAX_DEPTH = 64
_PACKET_ID = "W5M0MpCehiHzreSzNTczkc9d"

_LABEL_NAMES = frozenset({"AIGC", "DigitalSourceType"})
"""One label a file: whoever wrote the one before, ours replaces it (GB 45438-2025, 6.1 c)."""

_FOREIGN_NAMESPACES = (
    AIGC_NS,
    "http://ns.adobe.com/exif/1.0/aux/",
    "http://cipa.jp/exif/1.0/",
    "http://ns.adobe.com/hdr-gain-map/1.0/",
    "http://ns.apple.com/HDRGainMap/1.0/",
    "http://ns.adobe.com/xmp/note/",
    "http://ns.google.com/photos/1.0/",
    "http://www.metadataworkinggroup.com/schemas/regions/",
    "http://ns.microsoft.com/photo/1.2/",
)
"""Namespaces (and all that begins like them) of which nothing is kept: serial numbers of cameras and lenses, parts
that live outside the packet and are not carried (gain and depth maps, a continued packet), and regions that name the
people shown, whose faces are others now."""

_PRIVATE_NAMES = frozenset(
    {
        *("Make", "Model", "Orientation", "MakerNote", "ImageUniqueID", "SerialNumber"),
        *("Thumbnails", "provenance", "creator", "CreatorContactInfo", "AuthorsPosition", "Artist"),
        *("PersonInImage", "PersonInImageWDetails", "ImageRegion"),
        *("LocationCreated", "LocationShown"),
    }
)
"""Properties that name a device, a place or a person, picture the face that was there, or lie about the new pixels."""


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """The packet is not safe or not XMP."""


def properties(packet: bytes, name: str) -> tuple[str, ...]:
    """Every value that a packet gives a property, in the packet's order.

    Args:
        packet: UTF-8 XML, wrapped in `xpacket` or not.
        name: Local name, whatever the namespace: a label under a foreign namespace is a label too.

    Returns:
        The texts; none for a packet that is no XMP.
    """
    try:
        document = _parsed(packet)
    except _Refused:
        return ()
    found: list[str] = []
    for description in _descriptions(document):
        found.extend(a.value for a in _attributes(description) if a.localName == name)
        found.extend(_text(e) for e in _children(description) if e.localName == name)
    return tuple(found)


def merged(inherited: bytes | None, *, aigc: str | None, source_type: str) -> bytes:
    """A packet with our properties and what is worth keeping of the input's.

    Args:
        inherited: The packet of the input; `None`, an unreadable or an over-long one counts as empty.
        aigc: Value of `TC260:AIGC`; `None` for a file that keeps this label elsewhere.
        source_type: Value of `Iptc4xmpExt:DigitalSourceType`.

    Returns:
        UTF-8 XML in an `xpacket` wrapper, at most `MAX_PACKET_BYTES`.

    Raises:
        LabelError: Our own properties alone are too long.
    """
    if inherited:
        try:
            packet = _packet(_cleaned(_parsed(inherited)), aigc, source_type)
        except _Refused:
            packet = b""
        if 0 < len(packet) <= MAX_PACKET_BYTES:
            return packet
    packet = _packet(_empty(), aigc, source_type)
    if len(packet) > MAX_PACKET_BYTES:
        raise LabelError(f"XMP packet: got {len(packet)} bytes, at most {MAX_PACKET_BYTES} fit")
    return packet


def _parsed(packet: bytes) -> Document:
    """The tree of a packet that passed the scan; `_Refused` otherwise."""
    if len(packet) > MAX_PACKET_BYTES:
        raise _Refused
    try:
        # As text, not as bytes: an encoding that the packet declares itself would show the tree's parser other
        # characters than the scan has seen.
        text = packet.decode("utf-8").strip("\0 \t\r\n\ufeff")
        _scan(text)
        return parseString(text)
    except (UnicodeError, expat.ExpatError) as error:
        raise _Refused from error


def _scan(text: str) -> None:
    depth = 0

    def refuse(*_: object) -> NoReturn:
        raise _Refused

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise _Refused

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(text, True)


def _descriptions(document: Document) -> Iterator[Element]:
    for rdf in document.getElementsByTagNameNS(_RDF_NS, "RDF"):
        yield from (e for e in _children(rdf) if e.localName == "Description")


def _children(element: Element) -> tuple[Element, ...]:
    return tuple(node for node in element.childNodes if isinstance(node, Element))


def _attributes(element: Element) -> tuple[Attr, ...]:
    return tuple(a for a in element.attributes.values() if a.namespaceURI != _XMLNS_NS)


def _text(element: Element) -> str:
    resource = element.getAttributeNS(_RDF_NS, "resource")
    if resource:
        return str(resource)
    return "".join(node.data for node in element.childNodes if isinstance(node, Text)).strip()


def _is_dropped(node: Attr | Element) -> bool:
    namespace, name = node.namespaceURI or "", node.localName or ""
    return (
        name in _LABEL_NAMES
        or name in _PRIVATE_NAMES
        or name.startswith("GPS")
        or namespace.startswith(_FOREIGN_NAMESPACES)
    )


def _cleaned(document: Document) -> Document:
    """Take out of a freshly parsed tree what is not kept; `_Refused` when it holds no RDF."""
    found = False
    for description in _descriptions(document):
        found = True
        for attribute in _attributes(description):
            if _is_dropped(attribute):
                description.removeAttributeNode(attribute)
        for child in _children(description):
            if _is_dropped(child):
                description.removeChild(child).unlink()
    if not found:
        raise _Refused
    return document


def _empty() -> Document:
    return parseString(
        f'<x:xmpmeta xmlns:x="{_META_NS}"><rdf:RDF xmlns:rdf="{_RDF_NS}">'
        '<rdf:Description rdf:about=""/></rdf:RDF></x:xmpmeta>'
    )


def _packet(document: Document, aigc: str | None, source_type: str) -> bytes:
    """Add a description with our properties, about the same thing as the first one, and write it all out."""
    first = next(_descriptions(document))
    ours = document.createElementNS(_RDF_NS, "rdf:Description")
    ours.setAttributeNS(_XMLNS_NS, "xmlns:rdf", _RDF_NS)
    ours.setAttributeNS(_RDF_NS, "rdf:about", first.getAttributeNS(_RDF_NS, "about"))
    for prefix, namespace, name, value in (
        ("TC260", AIGC_NS, "AIGC", aigc),
        ("Iptc4xmpExt", IPTC_EXT_NS, "DigitalSourceType", source_type),
    ):
        if value is None:
            continue
        ours.setAttributeNS(_XMLNS_NS, f"xmlns:{prefix}", namespace)
        element = document.createElementNS(namespace, f"{prefix}:{name}")
        element.appendChild(document.createTextNode(value))
        ours.appendChild(element)
    rdf = first.parentNode
    assert rdf is not None
    rdf.appendChild(ours)
    assert document.documentElement is not None
    root = document.documentElement.toxml()
    return f'<?xpacket begin="\ufeff" id="{_PACKET_ID}"?>\n{root}\n<?xpacket end="w"?>'.encode()
