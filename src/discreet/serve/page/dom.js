// Elements with text content: nothing from a server is ever parsed as HTML.

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, work] of Object.entries(value)) element.addEventListener(event, work);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function fill(place, ...children) {
  place.replaceChildren(...children.filter((child) => child !== null));
}

// Set the text of a live region; a screen reader reads the same sentence again.
export function say(place, words) {
  place.textContent = "";
  place.textContent = words;
}

const PATHS = {
  warning: "M8 1.5 15 14H1ZM8 6v4M8 12v.5",
  remove: "M4 4l8 8M12 4l-8 8",
  save: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
  again: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
};

export function icon(name) {
  const attributes = { viewBox: "0 0 16 16", width: 16, height: 16, class: "icon", "aria-hidden": "true" };
  return draw("svg", attributes, draw("path", { d: PATHS[name] }));
}
