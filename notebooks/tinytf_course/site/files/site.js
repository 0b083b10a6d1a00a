// A choice is kept in this browser; choosing opens the results that waited for it.
(() => {
  // A browser may not read other files of a folder: search then shows titles without excerpts.
  if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }
  const key = (id) => `tinytf-predict-${id}`;
  const recall = (id) => { try { return localStorage.getItem(key(id)); } catch { return null; } };
  const keep = (id, text) => { try { localStorage.setItem(key(id), text); } catch { /* private */ } };

  function settle(id, text) {
    for (const button of document.querySelectorAll(`[data-predict="${id}"]`)) {
      button.setAttribute("aria-pressed", String(button.textContent === text));
    }
    for (const fold of document.querySelectorAll("details.until")) {
      const left = fold.dataset.until.split(" ").filter((other) => other !== id);
      fold.dataset.until = left.join(" ");
      if (!fold.dataset.until) fold.open = true;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const ids = new Set();
    for (const button of document.querySelectorAll("[data-predict]")) {
      ids.add(button.dataset.predict);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        keep(button.dataset.predict, button.textContent);
        settle(button.dataset.predict, button.textContent);
      });
    }
    for (const id of ids) if (recall(id)) settle(id, recall(id));
    // A link to a cell whose results are folded opens them.
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const results = target?.nextElementSibling?.nextElementSibling;
    if (results?.matches("details.until")) results.open = true;
  });
})();
