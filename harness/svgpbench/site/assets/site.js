// Filters of a table: a row, and its tile, stays where it is of every choice and has every word.
"use strict";

for (const form of document.querySelectorAll("form[data-filters]")) {
  const rows = [...document.querySelectorAll(`#${form.dataset.filters} tbody tr`)];
  const found = form.querySelector(".found");
  const what = found.textContent.replace(/^\d+ of \d+ /, "");
  const fields = [...form.elements].filter((field) => field.name);

  const restore = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      field.value = asked.get(field.name) ?? "";
    }
  };

  const apply = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const choices = fields.filter((field) => field.name !== "words" && field.value);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(
        choices.every((field) => row.dataset[field.name] === field.value) &&
        words.every((word) => text.includes(word))
      );
      shown += row.hidden ? 0 : 1;
      const tile = document.getElementById(row.dataset.tile);
      if (tile) tile.hidden = row.hidden;
    }
    found.textContent = `${shown} of ${rows.length} ${what}`;
  };

  const keep = () => {
    const asked = new URLSearchParams(fields.filter((f) => f.value).map((f) => [f.name, f.value]));
    history.replaceState(null, "", `#${asked}`);
    apply();
  };

  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { restore(); apply(); });
  restore();
  apply();
}
