from same.methods.untrained import Untrained


def test_nothing_is_drawn_or_learned():
    method = Untrained()
    assert not method.trains
    assert not method.has_heads
    assert method.losses(None, None) == {}
    assert method.evaluate(None, None) == {}
