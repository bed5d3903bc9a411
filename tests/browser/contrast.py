"""Which words of ours are hard to read: their colour is too near to what is behind them.

axe has a rule for that, and keeps silent: JupyterLab's body has no height and hides what leaves
it, so all of the page counts as hidden. It knows no placeholders and no words in pictures either.
"""

from __future__ import annotations

from playwright.sync_api import Locator

LEAST = 4.5
"""The contrast that WCAG asks for, of words in any usual size."""
MAY_BE_PALE = ":disabled, .aios-sr, .aios-codetools, [class^=aios-tok-]"
"""What is out of use or for ears only, what is whole where one points, and the colours that
Jupyter's own editor has for code."""
MEASURE = """(place, [least, palest]) => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
  const behind = (node) => !node ? [255, 255, 255]
    : over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const faded = (node) => !node ? 1
    : Number(getComputedStyle(node).opacity) * faded(node.parentElement);
  const found = [];
  const look = (node, words, colour) => {
    const seen = { visibilityProperty: true, opacityProperty: true };
    if (!words.trim() || !node.checkVisibility(seen) || node.closest(palest)) return;
    const under = behind(node);
    const [r, g, b, a] = rgba(colour);
    const lights = [light(over([r, g, b, a * faded(node)], under)), light(under)];
    const contrast = Math.max(...lights) / Math.min(...lights);
    const name = node.getAttribute("class") || node.localName;
    if (contrast < least) found.push(`${contrast.toFixed(2)}: ${name}: ${words.slice(0, 60)}`);
  };
  for (const root of place.querySelectorAll(".aios, .aios-out")) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode.parentElement;
      const style = getComputedStyle(node);
      look(node, texts.currentNode.data, node.ownerSVGElement ? style.fill : style.color);
    }
    for (const field of root.querySelectorAll(":placeholder-shown"))
      look(field, field.placeholder, getComputedStyle(field, "::placeholder").color);
  }
  return [...new Set(found)];
}"""


def hard_to_read(place: Locator) -> list[str]:
    """Their contrast, class and words."""
    found: list[str] = place.evaluate(MEASURE, [LEAST, MAY_BE_PALE])
    return found
