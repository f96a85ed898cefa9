import pytest

from app.media.expected import ExpectedFrames


def sent(*times: int | None, is_reliable: bool = True) -> ExpectedFrames:
    expected = ExpectedFrames(is_reliable=is_reliable)
    for pts in times:
        expected.sent(pts)
    return expected


def test_nothing_sent_is_nothing_missed() -> None:
    assert sent().never_came() == []


def test_frames_in_order_of_showing_miss_nothing() -> None:
    expected = sent(0, 3, 1, 2)
    assert [expected.came_out(pts) for pts in (0, 1, 2, 3)] == [[], [], [], []]
    assert expected.never_came() == []


def test_a_gap_is_told_when_the_next_frame_comes() -> None:
    expected = sent(0, 3, 1, 2)
    expected.came_out(0)
    assert expected.came_out(3) == [1, 2]


def test_what_never_came_is_told_at_the_end() -> None:
    expected = sent(0, 3, 1, 2)
    expected.came_out(0)
    assert expected.never_came() == [1, 2, 3]


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(sent(0, None, 2), id="a packet without a time"),
        pytest.param(sent(0, 1, 2, is_reliable=False), id="a codec with hidden frames"),
    ],
)
def test_nothing_is_claimed_without_reliable_times(expected: ExpectedFrames) -> None:
    assert expected.came_out(2) == []
    assert expected.never_came() == []


@pytest.mark.parametrize("pts", [7, None])
def test_a_time_that_nobody_sent_ends_all_claims(pts: int | None) -> None:
    expected = sent(0, 10, 20)
    assert expected.came_out(pts) == []
    assert expected.never_came() == []
