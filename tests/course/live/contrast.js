// The words of a panel whose contrast with what is under them is below 4.5, WCAG's AA.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colour, under) => { // a colour, perhaps see-through, painted on another
    for (const paint of [`rgb(${under})`, colour]) {
      canvas.fillStyle = paint;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.map((x) => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) =>
    node ? over(getComputedStyle(node).backgroundColor, ground(node.parentElement)) : [255, 255, 255];
  const speaks = (node) => !node.closest(":disabled, option, .still") &&
    [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  return [...document.querySelectorAll(".tinytf-live *")].filter(speaks).map((node) => {
    const under = ground(node), a = light(over(getComputedStyle(node).color, under)), b = light(under);
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.className, node.textContent.slice(0, 30)];
  }).filter(([ratio]) => ratio < 4.5);
}
