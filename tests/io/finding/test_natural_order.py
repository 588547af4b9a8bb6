import pytest

from xcorr_app.io.names import natural_key, safe_name, unique_names


def test_numbers_in_names_compare_as_numbers():
    names = ["t10", "t2", "t1", "T3", "t01", "a9b10", "a9b9", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "a9b9", "a9b10", "t01", "t1", "t2", "T3", "t10"]


def test_other_digits_do_not_break_the_order():
    assert min(["x²", "x٣", "x1"], key=natural_key) == "x1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain name", "plain name"),
        ("..", "stack"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("two\nlines", "two_lines"),
        (" .hidden ", "hidden"),
        ("", "stack"),
        ("a\0b", "a_b"),
        ("C:\\x", "C_x"),
        ("µm", "µm"),
        ("broken\udcff", "broken_"),
        ("aux", "aux_"),
        ("Com1.tif", "Com1.tif_"),
        ("console", "console"),
    ],
)
def test_safe_names(text, expected):
    assert safe_name(text) == expected


def test_unique_names_ignore_case_and_reserved_names():
    assert unique_names(["a", "A", "a_2", "run.json"], ["run.json"]) == ["a", "A_2", "a_2_2", "run.json_2"]
