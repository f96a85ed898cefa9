import sys

import pytest

from app.runtime.allocator import return_large_blocks


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_the_c_library_takes_the_setting() -> None:
    assert return_large_blocks() in (True, False)
    assert return_large_blocks() == return_large_blocks()
