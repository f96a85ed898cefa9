import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import LabelError
from app.labelling.xmp import MAX_PACKET_BYTES, merged, properties

URL = "http://example.org/type"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMESPACES = {
    "rdf": RDF,
    "dc": "http://purl.org/dc/elements/1.1/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "aux": "http://ns.adobe.com/exif/1.0/aux/",
    "TC260": "http://www.tc260.org.cn/ns/AIGC/1.0/",
    "Iptc4xmpExt": "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
    "mwg": "http://www.metadataworkinggroup.com/schemas/regions/",
    "note": "http://ns.adobe.com/xmp/note/",
    "other": "http://example.org/other/",
    "hdrgm": "http://ns.adobe.com/hdr-gain-map/1.0/",
}


def packet(inner: str = "", attributes: str = "", about: str = "") -> bytes:
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return (
        '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {declared}>'
        f'<rdf:Description rdf:about="{about}" {attributes}>{inner}</rdf:Description>'
        '</rdf:RDF></x:xmpmeta><?xpacket end="w"?>   \0'
    ).encode()


def test_without_an_inherited_packet_there_are_our_two_properties_only() -> None:
    made = merged(None, aigc='{"a":"<&>"}', source_type=URL)
    assert properties(made, "AIGC") == ('{"a":"<&>"}',)
    assert properties(made, "DigitalSourceType") == (URL,)
    assert made.startswith(b'<?xpacket begin="\xef\xbb\xbf" id=')
    assert b"<TC260:AIGC>" in made
    assert b"<Iptc4xmpExt:DigitalSourceType>" in made


def test_a_file_that_keeps_the_label_elsewhere_gets_the_source_type_only() -> None:
    made = merged(None, aigc=None, source_type=URL)
    assert properties(made, "AIGC") == ()
    assert properties(made, "DigitalSourceType") == (URL,)


@pytest.mark.parametrize(
    "inherited",
    [
        pytest.param(packet("<TC260:AIGC>old</TC260:AIGC>"), id="element"),
        pytest.param(packet(attributes='TC260:AIGC="old"'), id="attribute"),
        pytest.param(packet("<other:AIGC>old</other:AIGC>"), id="other namespace"),
        pytest.param(packet("<TC260:AIGC>old</TC260:AIGC>" * 3), id="three"),
        pytest.param(merged(None, aigc="old", source_type="http://old"), id="our own"),
    ],
)
def test_an_inherited_label_is_replaced(inherited: bytes) -> None:
    made = merged(inherited, aigc="new", source_type=URL)
    assert properties(inherited, "AIGC")[0] == "old"
    assert properties(made, "AIGC") == ("new",)
    assert properties(made, "DigitalSourceType") == (URL,)
    assert b"old" not in made


@pytest.mark.parametrize(
    ("inner", "attributes"),
    [
        pytest.param(
            '<dc:title><rdf:Alt><rdf:li xml:lang="x-default">KEPT</rdf:li></rdf:Alt></dc:title>',
            "",
            id="title",
        ),
        pytest.param("<dc:rights>KEPT</dc:rights>", "", id="rights"),
        pytest.param("", 'xmp:Rating="KEPT"', id="attribute"),
        pytest.param("<other:thing>KEPT &lt;&amp; é 脸</other:thing>", "", id="unknown"),
    ],
)
def test_foreign_properties_are_kept(inner: str, attributes: str) -> None:
    made = merged(packet(inner, attributes), aigc="new", source_type=URL)
    assert b"KEPT" in made
    assert properties(made, "AIGC") == ("new",)


@pytest.mark.parametrize(
    ("inner", "attributes"),
    [
        pytest.param("<exif:GPSLatitude>GONE</exif:GPSLatitude>", "", id="place"),
        pytest.param("", 'exif:GPSLongitude="GONE"', id="place as attribute"),
        pytest.param("<tiff:Make>GONE</tiff:Make>", 'tiff:Model="GONE"', id="device"),
        pytest.param("<aux:SerialNumber>GONE</aux:SerialNumber>", "", id="serial number"),
        pytest.param("<tiff:Orientation>GONE</tiff:Orientation>", "", id="orientation"),
        pytest.param(
            "<dc:creator><rdf:Seq><rdf:li>GONE</rdf:li></rdf:Seq></dc:creator>", "", id="author"
        ),
        pytest.param("<xmp:Thumbnails>GONE</xmp:Thumbnails>", "", id="picture of the old face"),
        pytest.param(
            "<mwg:Regions><rdf:Bag><rdf:li>GONE</rdf:li></rdf:Bag></mwg:Regions>", "", id="names"
        ),
        pytest.param(
            "<Iptc4xmpExt:PersonInImage>GONE</Iptc4xmpExt:PersonInImage>", "", id="person"
        ),
        pytest.param("", 'note:HasExtendedXMP="GONE"', id="continued packet"),
        pytest.param("", 'hdrgm:Version="GONE"', id="gain map"),
    ],
)
def test_what_is_private_or_no_longer_true_is_dropped(inner: str, attributes: str) -> None:
    made = merged(
        packet(inner + "<dc:title>KEPT</dc:title>", attributes), aigc="new", source_type=URL
    )
    assert b"GONE" not in made
    assert b"KEPT" in made


def test_our_description_is_about_what_the_others_are_about() -> None:
    made = merged(packet(about="uuid:1234"), aigc="new", source_type=URL)
    assert made.count(b'rdf:about="uuid:1234"') == 2


BOMB = b"""<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>"""


@pytest.mark.parametrize(
    "inherited",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b"<x>", id="no XML"),
        pytest.param(b"<x/>", id="no RDF"),
        pytest.param(BOMB, id="entities"),
        pytest.param(
            packet().replace(b"<x:xmpmeta", b"<!DOCTYPE x><x:xmpmeta"), id="document type"
        ),
        pytest.param(
            b"<?xml version='1.0'?><!DOCTYPE x SYSTEM 'file:///etc/passwd'><x/>", id="outside file"
        ),
        pytest.param(packet("<other:a>" * 100 + "</other:a>" * 100), id="deep nesting"),
        pytest.param(packet("<other:a>" + "x" * MAX_PACKET_BYTES + "</other:a>"), id="too long"),
        pytest.param("<?xml version='1.0' encoding='utf-16'?><x/>".encode("utf-16"), id="UTF-16"),
        pytest.param(packet("<undeclared:a/>"), id="unknown prefix"),
    ],
)
def test_a_packet_that_is_not_safe_counts_as_none(inherited: bytes) -> None:
    assert merged(inherited, aigc="new", source_type=URL) == merged(
        None, aigc="new", source_type=URL
    )
    assert properties(inherited, "AIGC") == ()


def test_an_encoding_that_the_packet_declares_is_not_believed() -> None:
    """In code page 37 these bytes would be a document type; the scan and the parser must read the same text."""
    hidden = "<!DOCTYPE x [<!ENTITY a 'b'>]><x/>".encode("cp037").decode("latin-1").encode()
    sly = b"<?xml version='1.0' encoding='cp037'?>" + hidden
    assert properties(sly, "AIGC") == ()


def test_what_is_kept_never_makes_the_packet_too_long() -> None:
    nearly = packet("<other:a>" + "x" * (MAX_PACKET_BYTES - 2000) + "</other:a>")
    assert len(merged(nearly, aigc="n" * 3000, source_type=URL)) <= MAX_PACKET_BYTES


def test_labels_that_cannot_fit_are_an_error() -> None:
    with pytest.raises(LabelError):
        merged(None, aigc="n" * MAX_PACKET_BYTES, source_type=URL)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_packet_breaks_the_merge(noise: bytes, at: int) -> None:
    base = packet("<dc:title>t</dc:title>", 'xmp:Rating="3"')
    made = merged(base[:at] + noise + base[at:], aigc="new", source_type=URL)
    assert properties(made, "AIGC") == ("new",)
