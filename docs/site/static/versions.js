// Fills the switch of versions from versions.json, which stands beside the folders of all versions.
document.addEventListener("DOMContentLoaded", async () => {
  if (location.protocol === "file:") return; // no browser reads JSON there
  const select = document.querySelector(".versions select");
  const own = select.value;
  const root = new URL(select.dataset.root, location.href);
  const versions = await (await fetch(new URL("../versions.json", root))).json();
  select.replaceChildren(...versions.map(v => new Option(v, v, v === own, v === own)));
  select.addEventListener("change", () => {
    location.href = new URL(`../${select.value}/`, root);
  });
});
