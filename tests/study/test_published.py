from same.study.published import _table, published


def test_all_240_published_numbers_are_there():
    assert len(_table()) == 240
    assert published("Q1", ("nc",), "nc", "classical", "ENZYMES") == (87.5, 1.9)
    assert published("Q2", ("gc", "nc", "lp"), "lp", "esame", "COX2") == (98.8, None)
    assert published("Q3", ("nc", "lp"), "gc", "classical", "COX2") == (79.9, 3.4)
    assert published("Q1", ("gc",), "gc", "finetuned", "COX2") is None
