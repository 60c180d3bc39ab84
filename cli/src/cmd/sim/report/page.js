// All rows and plots are in the page. This shows what a reader chooses: rows, an order of the table, a measure.
for (const section of document.querySelectorAll("section")) {
  for (const box of section.querySelectorAll("input")) {
    const parts = section.querySelectorAll(`[data-row="${box.value}"]`);
    box.onchange = () => parts.forEach(part => part.classList.toggle("unticked", !box.checked));
    box.onchange();
  }
  for (const button of section.querySelectorAll("button")) button.onclick = () => {
    const column = button.closest("th").cellIndex, rows = button.closest("table").tBodies[0];
    const value = row => Number(row.cells[column].dataset.v ?? -Infinity);
    rows.append(...[...rows.rows].sort((a, b) => value(b) - value(a)));
  };
  for (const list of section.querySelectorAll("select")) list.onchange = () =>
    section.querySelectorAll(".measure").forEach((table, nth) => { table.hidden = nth !== list.selectedIndex; });
}
