"""Draws docs/tensor_cores.svg: correlation as a product with a Hankel matrix (python docs/draw_tensor_cores.py)."""

from __future__ import annotations

import colorsys
from pathlib import Path
from xml.sax.saxutils import escape

INK, PLAIN_INK, MARK = "#222222", "#2f5d8a", "#c0151f"
WIDTH, HEIGHT = 1120, 1110
CELL = 17
SHIFTS = COLUMNS = 16
ROWS_DRAWN = 8  # ey of one tile of B


class Drawing:
    """Collects SVG elements."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, fill: str, line: str = "#ffffff", width: float = 1) -> None:
        """A rectangle."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{fill}" stroke="{line}" '
            f'stroke-width="{width:g}"/>'
        )

    def text(self, x: float, y: float, words: object, size: int = 13, at: str = "start", **style: str) -> None:
        """One line of words."""
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in ({"fill": INK} | style).items())
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{at}"{more}>{escape(str(words))}</text>'
        )

    def lines(self, x: float, y: float, *all_words: str) -> None:
        """Several lines of words."""
        for i, words in enumerate(all_words):
            self.text(x, y + i * 17, words, 12)

    def heading(self, x: float, y: float, words: str) -> None:
        """What a part of the picture shows."""
        self.text(x, y, words, 15, font_weight="bold")

    def path(self, *points: tuple[float, float], width: float = 1.5) -> None:
        """A line through points."""
        places = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" fill="none" stroke="{INK}" stroke-width="{width:g}"/>')

    def label(self, x: float, y: float, width: float, words: str, size: int = 12) -> None:
        """Words on a white ground, centred at x."""
        self.box(x - width / 2, y - size - 2, width, size + 8, "#ffffff", "none", 0)
        self.text(x, y, words, size, "middle", font_weight="bold")

    def svg(self) -> str:
        """The whole file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif">'
        )
        page = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        return "\n".join([head, page, *self._parts, "</svg>\n"])


def colour(index: int, of: int = 31) -> str:
    """Of an element of the moving row: equal elements have equal colours wherever they appear."""
    return _hex(colorsys.hls_to_rgb(0.92 * index / of, 0.74 if index % 2 else 0.66, 0.62))


def grey(row: int) -> str:
    """Of a fixed row."""
    return _hex(colorsys.hls_to_rgb(0.58, 0.90 - 0.055 * row, 0.35))


def turned(x: float, y: float) -> str:
    """Of words that run upwards."""
    return f"rotate(-90 {x:g} {y:g})"


def _hex(parts: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def numbered(d: Drawing, x: float, y: float, index: int, width: float = CELL, words: str | None = None) -> None:
    """One element of the moving row."""
    d.box(x, y, width, CELL, colour(index))
    d.text(x + width / 2, y + CELL - 5, index if words is None else words, 9, "middle")


def moving_row(d: Drawing, x: float, y: float) -> None:
    """The row, its copy that is shifted by one element, and the lane that needs it."""
    d.heading(x, y, "1  One row of a frame, in fp16, twice: as it is, and shifted by one element")
    d.text(x, y + 38, "for even ex", 12)
    d.text(x, y + 68, "for odd ex", 12)
    left = x + 110
    for shifted in (0, 1):
        for word in range(16):
            at = left + word * (2 * CELL + 8)
            for half in (0, 1):
                index = 2 * word + half + shifted
                if index < 31:
                    numbered(d, at + half * CELL, y + 25 + 30 * shifted, index)
            d.box(at, y + 25 + 30 * shifted, 2 * CELL, CELL, "none", INK, 0.8)
    for word in (2, 6, 10):
        at = left + word * (2 * CELL + 8)
        d.box(at - 2, y + 53, 2 * CELL + 4, CELL + 4, "none", MARK, 2)
    d.lines(
        left + 16 * (2 * CELL + 8) + 10,
        y + 38,
        "a box: one word of 32 bits,",
        "two elements; red: what",
        "lane 13 reads",
    )


def product(d: Drawing, x: float, y: float) -> None:
    """A times B is the tile of sums."""
    side = 16 * CELL
    d.heading(x, y, "2  A[ex][x] = moving[y][x + ex]")
    top = y + 46
    a_left = x + 70
    for ex in range(SHIFTS):
        for column in range(COLUMNS):
            numbered(d, a_left + column * CELL, top + ex * CELL, ex + column)
    for i, (row, column) in enumerate(((0, 0), (8, 0), (0, 8), (8, 8))):
        d.box(a_left + column * CELL, top + row * CELL, 8 * CELL, 8 * CELL, "none", INK, 2.5)
        d.box(a_left + (column + 2) * CELL, top + (row + 3) * CELL, 2 * CELL, CELL, "none", MARK, 2.5)
        name = ("h0", "h1", "h1", "h2")[i]
        d.label(a_left + (column + 6) * CELL, top + (row + 6.4) * CELL, 2 * CELL, name, 16)
    d.text(a_left + side / 2, top - 10, "16 columns x (K)", 12, "middle")
    d.lines(x, top + side / 2 - 9, "16 shifts", "ex (M)")
    d.text(a_left + side + 30, top + side / 2 + 8, "\N{MULTIPLICATION SIGN}", 26, "middle")

    b_left = a_left + side + 60
    b_width = ROWS_DRAWN * 24
    for ey in range(ROWS_DRAWN):
        for column in range(COLUMNS):
            d.box(b_left + ey * 24, top + column * CELL, 24, CELL, grey(ey))
        d.text(b_left + ey * 24 + 12, top - 6, "y" if ey == 0 else f"y-{ey}", 10, "middle", fill=PLAIN_INK)
    d.heading(b_left - 8, y, "B[x][ey] = fixed[y - ey][x]")
    d.text(b_left + b_width / 2, top - 22, "8 shifts ey (N): rows of the reference", 12, "middle")
    d.lines(b_left, top + side + 20, "a column of B is a row of the", "reference as it is")
    d.text(b_left + b_width + 30, top + side / 2 + 8, "=", 24, "middle")

    c_left = b_left + b_width + 60
    for ey in range(ROWS_DRAWN):
        for ex in range(SHIFTS):
            d.box(c_left + ey * 24, top + ex * CELL, 24, CELL, "#f2e6c9")
    d.heading(c_left, y, "what row y adds to sums[ex][ey]")
    d.text(c_left + b_width / 2, top - 10, "8 shifts ey", 12, "middle")
    d.lines(c_left + b_width + 10, top + side / 2 - 9, "16 shifts", "ex")
    d.lines(
        c_left,
        top + side + 20,
        "the sums stay in registers while the products",
        "go on along the row and down the rows",
    )
    d.lines(
        a_left,
        top + side + 20,
        "equal along every anti-diagonal; red: the four",
        "registers of lane 13, of which h1 is there twice",
    )


def registers(d: Drawing, x: float, y: float) -> None:
    """Fragments that follow each other share their words."""
    d.heading(x, y, "3  A lane's words along the row: 16 more columns cost two")
    word, left, top = 46, x + 4, y + 24
    for i in range(7):
        fresh = i >= 5
        d.box(left + i * word, top, word - 5, 28, colour(4 * i + 2), MARK if fresh else INK, 2.5 if fresh else 1)
        d.text(left + i * word + (word - 5) / 2, top + 19, f"h{i}", 14, "middle", font_weight="bold")
    steps = (
        (0, "shifts 0-15, columns 0-15"),
        (2, "shifts 16-31, columns 0-15"),
        (2, "shifts 0-15, columns 16-31"),
        (4, "shifts 16-31, columns 16-31"),
    )
    for i, (first, words) in enumerate(steps):
        line = top + 46 + i * 26 + (12 if i > 1 else 0)
        d.path((left + first * word, line), (left + (first + 3) * word - 5, line), width=5)
        names = f"h{first} h{first + 1} h{first + 1} h{first + 2}"
        d.text(left + 7 * word + 6, line + 4, names, 12)
        d.text(left + 7 * word + 110, line + 4, words, 12)
    d.lines(
        x,
        top + 182,
        "red: the two words that the second step of 16 columns adds,",
        "for 32 shifts as for 16; the others are there",
    )


def sliding(d: Drawing, x: float, y: float) -> None:
    """B in shared memory: sixteen bytes a row."""
    d.heading(x, y, "4  B in shared memory: 16 bytes a row")
    top, height, wide = y + 46, 21, 92
    names = ["y+2", "y+1", "y", *(f"y-{i}" for i in range(1, 8))]
    for chunk in (0, 1):
        left = x + 96 + chunk * (wide + 14)
        d.text(left + wide / 2, top - 8, ("columns 0-7", "columns 8-15")[chunk], 11, "middle")
        for i, name in enumerate(names):
            d.box(left, top + i * height, wide, height, grey(max(0, i - 2)) if i > 1 else "#eeeeee")
            d.text(left + wide / 2, top + i * height + 15, name, 11, "middle", fill="#ffffff" if i > 5 else PLAIN_INK)
    for at, first, words in ((x + 84, 2, "row y"), (x + 44, 1, "row y+1")):
        y0, y1 = top + first * height + 2, top + (first + 8) * height - 2
        d.path((at + 6, y0), (at, y0), (at, y1), (at + 6, y1))
        d.text(at - 6, (y0 + y1) / 2, words, 11, "middle", transform=turned(at - 6, (y0 + y1) / 2))
    d.lines(
        x,
        top + 10 * height + 22,
        "For the next row of the frame B begins 16 bytes earlier:",
        "a row more, a row less; nothing is moved.",
    )


def four_frames(d: Drawing, x: float, y: float) -> None:
    """M = 64: each of four warps its own frame."""
    d.heading(x, y, "5  A product of four warps: four frames, M = 64, that share B")
    top, height = y + 34, 34
    for i in range(4):
        for column in range(24):
            d.box(x + column * 6, top + i * (height + 4), 6, height, colour((column + 8 * i) % 31), "none", 0)
        d.box(x, top + i * (height + 4), 144, height, "none", INK, 1.2)
        d.label(x + 72, top + i * (height + 4) + 22, 128, f"frame {i}, warp {i}")
        d.box(x + 350, top + i * (height + 4), 110, height, "#f2e6c9", INK, 1.2)
        d.text(x + 405, top + i * (height + 4) + 22, f"sums of frame {i}", 12, "middle")
    middle = top + 2 * (height + 4)
    d.text(x + 167, middle + 6, "\N{MULTIPLICATION SIGN}", 26, "middle")
    for ey in range(8):
        d.box(x + 190 + ey * 16, middle - 36, 16, 72, grey(ey))
    d.label(x + 254, middle + 3, 104, "B, N = 32 ey")
    d.text(x + 334, middle + 7, "=", 24, "middle")
    d.text(x + 72, top + 4 * (height + 4) + 16, "registers: 16 ex each", 12, "middle")
    d.text(x + 254, top + 4 * (height + 4) + 16, "shared memory: read once", 12, "middle")
    d.text(x + 405, top + 4 * (height + 4) + 16, "registers", 12, "middle")


def window(d: Drawing, x: float, y: float) -> None:
    """The window of one frame in tiles."""
    d.heading(x, y, "6  The window of a frame: 32 x 32 shifts")
    top, side = y + 34, 34
    left = x + 40
    for m in range(2):
        for n in range(4):
            d.box(left + n * side, top + m * 2 * side, side, 2 * side, "#f2e6c9", "#b09a60", 1)
    for m in range(2):
        d.box(left, top + m * 2 * side, 4 * side, 2 * side, "none", INK, 2.2)
        d.text(left + 2 * side, top + m * 2 * side + 39, f"product {m}", 12, "middle", font_weight="bold")
    d.text(left + 2 * side, top - 8, "ey 0 ... 31", 12, "middle")
    d.text(left - 12, top + 2 * side, "ex 0 ... 31", 12, "middle", transform=turned(left - 12, top + 2 * side))
    d.lines(
        left + 4 * side + 24,
        top + 28,
        "Two products a step of 16 columns:",
        "both take the same fixed rows, and the",
        "second's fragments are the first's of",
        "the next step. That is 32 x 32 x 16",
        "multiply-adds, and each is one that",
        "the definition asks for.",
    )


def drawing() -> str:
    """The whole picture."""
    d = Drawing()
    moving_row(d, 24, 34)
    product(d, 24, 152)
    registers(d, 24, 556)
    sliding(d, 690, 556)
    four_frames(d, 24, 898)
    window(d, 610, 898)
    return d.svg()


if __name__ == "__main__":
    (Path(__file__).parent / "tensor_cores.svg").write_text(drawing(), encoding="utf-8")
