"use strict";
// What a page can do where scripts run. Without them the movie loops, pictures stand side by side, tables keep their order.
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const range = (label, max, value) => make("input", { type: "range", min: 0, max, value, ariaLabel: label });

// A movie is its frames one below the other: the one that is shown is moved into view.
for (const film of document.querySelectorAll(".film")) {
  const image = film.querySelector("img"), count = Number(film.dataset.frames), seconds = parseFloat(film.dataset.seconds);
  const button = make("button", { type: "button" }), slider = range("Frame of the movie", count - 1, 0), label = make("output");
  let shown = 0, timer = null;
  const show = (frame) => {
    shown = frame % count;
    image.style.transform = `translateY(${(-100 * shown) / count}%)`;
    slider.value = shown;
    label.textContent = `${shown + 1} of ${count}`;
  };
  const play = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(() => show(shown + 1), (1000 * seconds) / count) : null;
    button.textContent = on ? "Pause" : "Play";
  };
  slider.oninput = () => { play(false); show(Number(slider.value)); };
  button.onclick = () => play(timer === null);
  image.style.animation = "none";
  film.after(make("div", { className: "controls" }, button, slider, label));
  show(0);
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
}

// Before and after on top of each other, with a slider for the line between them.
for (const pair of document.querySelectorAll(".pair")) {
  const blink = pair.querySelector("input");
  if (!blink) continue;
  const slider = range("Line between before and after", 100, 50);
  const button = make("button", { type: "button", textContent: "Slide", ariaPressed: "false" });
  slider.oninput = () => pair.style.setProperty("--line-at", `${slider.value}%`);
  const slide = (on) => {
    pair.classList.toggle("sliding", on);
    button.ariaPressed = String(on);
    slider.hidden = !on;
  };
  button.onclick = () => { blink.checked = false; slide(!pair.classList.contains("sliding")); };
  blink.addEventListener("change", () => slide(false));
  pair.querySelector(".sides").after(make("div", { className: "controls" }, button, slider));
  slide(false);
  slider.oninput();
}

// Tables of stacks: sorted by a heading, filtered by words.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 2) continue;
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim().replaceAll("\u2212", "-").split("\u2192").pop().trim();
    return /^-?[\d.]/.test(text) ? parseFloat(text) : text;
  };
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = make("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.onclick = () => {
      const up = heading.ariaSort !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
      heading.ariaSort = up ? "ascending" : "descending";
      const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1);
      rows.sort((a, b) => (up ? 1 : -1) * order(key(a, column), key(b, column)));
      body.append(...rows);
    };
  });
  const search = make("input", { type: "search", placeholder: "Filter stacks", ariaLabel: "Filter stacks" });
  search.oninput = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  };
  table.parentElement.before(search);
}
