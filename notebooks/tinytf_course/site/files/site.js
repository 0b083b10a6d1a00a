// A choice is kept in this browser; choosing opens the results that waited for it. So are the
// chapters that were read to their end: the course map fills them in. Code has a button to copy it.
(() => {
  // A browser may not read other files of a folder: search then shows titles without excerpts.
  if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }
  const recall = (id) => {
    try { return localStorage.getItem(`tinytf-${id}`); } catch { return null; }
  };
  const keep = (id, text) => {
    try { localStorage.setItem(`tinytf-${id}`, text); } catch { /* private */ }
  };

  const chosen = new Map(); // what was chosen, by the prediction's id

  function settle(id, text) {
    chosen.set(id, text);
    for (const button of document.querySelectorAll(`[data-predict="${id}"]`)) {
      button.setAttribute("aria-pressed", String(button.textContent === text));
    }
    for (const fold of document.querySelectorAll("details.until")) {
      const ids = fold.dataset.until.split(" ");
      if (!ids.includes(id) || !ids.every((one) => chosen.has(one))) continue;
      const summary = fold.querySelector("summary");
      const said = ids.map((one) => chosen.get(one)).join("; ");
      summary.textContent = `${summary.dataset.measured}. You chose: ${said}`;
      fold.open = true;
    }
  }

  async function write(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea"); // where a page is not served over https
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done ? undefined : Promise.reject(new Error("not copied"));
  }

  function addCopy(block) {
    const button = document.createElement("button");
    const say = (text) => {
      button.textContent = text;
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.ariaLive = "polite";
    button.addEventListener("click", () => {
      const code = block.querySelector("pre").textContent.trimEnd();
      write(code).then(() => say("Copied"), () => say("Not copied"));
    });
    block.append(button);
  }

  const root = document.documentElement;
  let theme; // paper is light
  addEventListener("beforeprint", () => { ({ theme } = root.dataset); root.dataset.theme = "light"; });
  addEventListener("afterprint", () => { root.dataset.theme = theme; });

  document.addEventListener("DOMContentLoaded", () => {
    const ids = new Set();
    for (const button of document.querySelectorAll("[data-predict]")) {
      ids.add(button.dataset.predict);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        keep(`predict-${button.dataset.predict}`, button.textContent);
        settle(button.dataset.predict, button.textContent);
      });
    }
    for (const id of ids) {
      const said = recall(`predict-${id}`);
      if (said) settle(id, said);
    }
    const fillIn = () => {
      for (const shape of document.querySelectorAll(".course-map [data-chapters]")) {
        const chapters = shape.dataset.chapters.split(" ");
        shape.classList.toggle("done", chapters.every((chapter) => recall(`done-${chapter}`)));
      }
    };
    const chapter = location.pathname.match(/(\d\d)_\w+\.html$/)?.[1];
    const last = [...document.querySelectorAll(".cell-anchor")].pop();
    if (chapter && last) {
      new IntersectionObserver(([seen]) => {
        if (seen.isIntersecting) { keep(`done-${chapter}`, "read"); fillIn(); }
      }).observe(last);
    }
    fillIn();
    document.querySelectorAll(".bd-article div.highlight").forEach(addCopy);
    window.MathJax?.startup?.promise?.then(() => {
      for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
        if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0; // the keys scroll it
      }
    });
    // A link to a cell whose results are folded opens them.
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const results = target?.nextElementSibling?.nextElementSibling;
    if (results?.matches("details.until")) results.open = true;
  });
})();
