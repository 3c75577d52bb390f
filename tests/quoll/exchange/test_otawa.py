"""OTAWA's flow facts: counts of back edges become counts of headers; the rest is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.errors import FactsError
from quoll.exchange.otawa_text import read_ff
from quoll.exchange.otawa_xml import read_ffx, write_ffx
from quoll.exchange.stated import ImportedFact

TEXT = """\
checksum "bs.elf" 0x4359a46d;
// Function binary_search (bs.c:77)
loop "binary_search" + 0x2c 10 ; // 0x8260
loop 0x8300 max 7 total 70 ;
loop "bs.c" : 12
     010;
return 0x8404; noreturn "_exit";
multibranch "f" + 16 to 0x10, "g";
"""
FACTS = (
    (3, "loop binary_search+0x2c at most 11"),
    (4, "loop 0x8300 at most 8"),
    (5, "loop bs.c:12 at most 9"),
    (7, "0x8404 returns to its caller"),
    (7, "_exit never returns"),
    (8, "targets of f+0x10 are 0x10, g"),
)
XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<flowfacts>
  <loop label="binary_search" offset="0x2c" maxcount="10"/>
  <function label="main">
    <loop label="main" offset="8" maxcount="7" totalcount="70">
      <loop offset="16" maxcount="3"/>
    </loop>
  </function>
  <loop source="bs.c" line="12" maxcount="NOCOMP"/>
  <noreturn label="_exit"/>
  <multicall address="0x20"><target label="f"/><target address="0x40"/></multicall>
</flowfacts>
"""


def test_text() -> None:
    found = read_ff(TEXT, "a.ff")
    assert found.facts == tuple(ImportedFact(line, text) for line, text in FACTS)
    assert [remark.partition(": ")[0] for remark in found.remarks] == ["a.ff:1", "a.ff:4"]


def test_xml() -> None:
    found = read_ffx(XML.encode(), "a.ffx")
    assert [(fact.line, fact.text) for fact in found.facts] == [
        (3, "loop binary_search+0x2c at most 11"),
        (5, "loop main+0x8 at most 8"),
        (6, "loop main+0x10 at most 4"),
        (10, "_exit never returns"),
        (11, "targets of 0x20 are f, 0x40"),
    ]
    assert [remark.partition(": ")[0] for remark in found.remarks] == ["a.ffx:5", "a.ffx:9"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("loop 0x10 total 5;", "a total without a maximum"),
        ("loop 0x10 ?;", "the bound is not known"),
        ("loop 0x10 3 in 0x20 / 0x30;", "one calling context only"),
        ('loop "f" - 4 3;', "a place before a label"),
        ("loop 0x10 max 3 max 4;", "said twice"),
        ("loop 0x10 08;", "it has no maximum"),
        ("\nloop 0x10 3", "a.ff:2: 'loop' is not read: the statement has no end"),
        ("ignorecontrol 0x10;", "'ignorecontrol 0x10' is not read: no fact means the same"),
        ("memory access 0x10 0x20 .. 0x30;", "no fact means the same"),
        ("multicall 0x10 to ?;", "a place is expected"),
        ("loop 0x10 max 3 min 4;", "its minimum is above its maximum"),
        ("loop 0x10 3; /* then\nloop 0x20 3;", "'/*' is not read: the comment has no end"),
    ],
)
def test_what_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(FactsError, match=r"a\.ff:\d: ") as error:
        read_ff(text, "a.ff")
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<call name='f'><loop/></call>", "one calling context only"),
        ("<function label='f'><loop label='g' maxcount='3'/></function>", "called from f"),
        ("<function label='f'><loop source='a.c' line='3' maxcount='3'/></function>", "in f only"),
        ("<function address='3'><loop offset='3' maxcount='3'/></function>", "has no label"),
        ("<loop label='f' context='g' maxcount='3'/>", "'context' is not known"),
        ("<loop maxcount='3'/>", "no place"),
        ("<loop label='f' maxcount='three'/>", "'three' is no number"),
        ("<control-constraint/>", "no fact means the same inside of 'flowfacts'"),
        ("<multicall label='f'></multicall>", "it has no target"),
        ("<loop", "is not XML"),
        ("<loop label='f' maxcount='3' mincount='4'/>", "its minimum is above its maximum"),
        ("loop 0x10 3;", "'loop 0x10 3;' is not read: facts are elements, not text"),
    ],
)
def test_what_xml_is_refused(text: str, why: str) -> None:
    with pytest.raises(FactsError, match=r"a\.ffx:\d") as error:
        read_ffx(f"<flowfacts>{text}</flowfacts>".encode(), "a.ffx")
    assert why in str(error.value)


def test_entities_are_refused_before_they_expand() -> None:
    entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(30))
    laughs = f'<!DOCTYPE x [<!ENTITY a0 "ha">{entities}]><flowfacts>&a30;</flowfacts>'
    with pytest.raises(FactsError, match="document type are refused"):
        read_ffx(laughs.encode(), "a.ffx")


@pytest.mark.parametrize(
    ("encoding", "name", "read"),
    [
        ("UTF-8", "f", True),
        ("UTF-8", "f\u00e4", True),
        ("ISO-8859-1", "f", True),
        ("ISO-8859-1", "f\u00e4", False),
        *((e, "f", False) for e in ("utf-7", "utf-16", "shift_jis", "idna", "rot13", "nothing")),
    ],
)
def test_a_file_is_utf_8(encoding: str, name: str, read: bool) -> None:
    loop = f"<flowfacts><loop label='{name}' maxcount='3'/></flowfacts>"
    data = f"<?xml version='1.0' encoding='{encoding}'?>{loop}".encode()
    if read:
        assert [fact.text for fact in read_ffx(data, "a.ffx").facts] == [f"loop {name} at most 4"]
        return
    with pytest.raises(FactsError, match=rf"a\.ffx:1: 'encoding {encoding.lower()}' is not read"):
        read_ffx(data, "a.ffx")


def test_depth_is_limited() -> None:
    loops = "<flowfacts>" + "<loop label='f' maxcount='3'>" * 5000
    with pytest.raises(FactsError, match="nested more than"):
        read_ffx(loops.encode(), "a.ffx")


@given(st.text(), st.binary())
def test_any_file_is_read_or_refused(text: str, data: bytes) -> None:
    with suppress(FactsError):
        read_ff(text, "a.ff")
    with suppress(FactsError):
        read_ffx(data, "a.ffx")


def test_what_is_written_is_read() -> None:
    text = write_ffx([(0x8260, 11, "<f+0x2c> a.c:7 -- a"), (0x8300, 1, "g")], "about")
    found = read_ffx(text.encode(), "a.ffx")
    assert [fact.text for fact in found.facts] == [
        "loop 0x8260 at most 11",
        "loop 0x8300 at most 1",
    ]
