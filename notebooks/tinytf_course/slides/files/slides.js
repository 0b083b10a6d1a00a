// Whatever is still too large for its slide is made smaller before the show begins.
(() => {
  const WIDE = 1180;
  function fit(section) {
    const body = section.querySelector(".body"), inner = section.querySelector(".inner");
    if (!body || !inner) return;
    const style = getComputedStyle(body);
    const room = style.maxHeight === "none" ? body.clientHeight : parseFloat(style.maxHeight);
    let scale = 1;
    for (let step = 0; step < 12; step += 1) {
      // Text that gets smaller gets wider lines: the inside keeps the slide's whole width.
      inner.style.zoom = scale;
      inner.style.width = `${WIDE / scale}px`;
      const high = inner.getBoundingClientRect().height, wide = inner.scrollWidth * scale;
      if (high <= room + 1 && wide <= WIDE + 1) break;
      scale *= Math.max(0.8, Math.min(0.97, room / high, WIDE / wide));
    }
    section.dataset.scale = scale.toFixed(2);
  }
  // An explorer draws its ribbons in pixels of the screen; a slide may be scaled.
  function straighten() {
    for (const stage of document.querySelectorAll("section.present .tinytf-explorer .ribbons")) {
      const host = stage.parentElement;
      const scale = host.getBoundingClientRect().width / host.offsetWidth;
      stage.style.transformOrigin = "0 0";
      stage.style.width = stage.style.height = `${100 * scale}%`;
      stage.style.transform = `scale(${1 / scale})`;
    }
  }
  const ready = window.MathJax?.startup?.promise ?? Promise.resolve();
  ready.then(() => {
    document.querySelectorAll(".slides > section").forEach(fit);
    return Reveal.initialize({
      width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
      transition: "none", controls: false, plugins: [RevealNotes],
    });
  }).then(() => {
    document.body.dataset.ready = "1";
    straighten();
    Reveal.on("slidechanged", straighten);
    Reveal.on("resize", straighten);
  });
})();
