// Panels: controls above a figure, made from the states that were drawn when the site was built.
// Without this script the first state stands there as a picture.
(() => {
  let count = 0;

  function setUp(panel) {
    const facts = JSON.parse(panel.querySelector("script").textContent);
    const { names, values, kinds, start, together, states, address, wide } = facts;
    const figure = panel.querySelector(".figure");
    const picture = figure.querySelector("img");
    const message = document.createElement("p");
    message.className = "message";
    const at = [...start];
    const find = () => states.find((state) => state.at.every((place, k) => place === at[k]));
    const fetchAll = () => {
      for (const { file } of states) if (file) new Image().src = `${address}/${file}`;
    };

    function show() {
      const state = find();
      picture.hidden = !state.file;
      message.textContent = state.error ?? "";
      if (state.file) {
        picture.src = `${address}/${state.file}`;
        picture.alt = state.alt;
        Object.assign(picture, { width: state.width, height: state.height });
        picture.style.width = `${(100 * state.width) / wide}%`;
      }
      panel.dataset.state = names.map((name, k) => `${name} = ${values[k][at[k]]}`).join(", ");
    }

    const controls = names.map((name, k) => {
      const control = makeControl(kinds[k], values[k]);
      const label = document.createElement("label");
      const value = document.createElement("output");
      control.id = `panel-${(count += 1)}`;
      label.htmlFor = value.htmlFor = control.id;
      label.textContent = name;
      const write = () => {
        if (kinds[k] === "box") control.checked = values[k][at[k]] === "True";
        else if (kinds[k] !== "fixed") control.value = at[k];
        if (kinds[k] === "slider") {
          value.textContent = values[k][at[k]];
          control.setAttribute("aria-valuetext", values[k][at[k]]);
        }
      };
      control.addEventListener("input", () => {
        if (!together) start.forEach((place, other) => { at[other] = place; });
        at[k] = kinds[k] === "box" ? Number(control.checked) : Number(control.value);
        controls.forEach((one) => one.write());
        show();
      });
      const box = document.createElement("div");
      box.className = "control";
      box.append(label, control);
      if (kinds[k] === "slider") box.append(value);
      return { box, write };
    });

    const row = document.createElement("div");
    row.className = "controls";
    row.role = "group";
    row.ariaLabel = "What the figure shows";
    row.append(...controls.map(({ box }) => box));
    if (!together) {
      const note = document.createElement("p");
      note.textContent = "One at a time here; in the notebook all of them move together.";
      row.append(note);
    }
    const larger = document.createElement("button"); // on a phone: not the whole figure, but readable
    larger.type = "button";
    larger.className = "larger";
    larger.textContent = "Larger type";
    larger.ariaPressed = "false";
    larger.addEventListener("click", () => {
      larger.ariaPressed = String(panel.classList.toggle("large"));
    });
    row.append(larger);
    row.addEventListener("pointerenter", fetchAll, { once: true });
    row.addEventListener("focusin", fetchAll, { once: true });
    panel.prepend(row);
    figure.append(message);
    controls.forEach((one) => one.write());
    show();
  }

  function makeControl(kind, values) {
    const control = document.createElement({ choice: "select", fixed: "output" }[kind] ?? "input");
    if (kind === "fixed") {
      control.textContent = values[0];
    } else if (kind === "choice") {
      control.append(...values.map((value, place) => new Option(value, place)));
    } else if (kind === "box") {
      control.type = "checkbox";
    } else {
      Object.assign(control, { type: "range", min: 0, max: values.length - 1, step: 1 });
    }
    return control;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".explored").forEach(setUp);
  });
})();
