// Draws the map of the pictures from the JSON in #map-data.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(`map-${id}`);
  const data = JSON.parse(byId("data").textContent);
  const decode = (text, Kind) => new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const points = decode(data.points, Uint16Array); // x and y of each picture in turn
  const labels = decode(data.labels, Int16Array);
  const predicted = decode(data.predicted, Int16Array);
  const confidence = decode(data.confidence, Uint16Array);
  const parts = decode(data.parts, Uint8Array);
  const outlier = decode(data.outlier, Uint8Array);
  const suspect = decode(data.suspect, Uint8Array);
  const tiles = decode(data.tiles, Uint16Array);
  const total = data.names.length;

  const SPAN = 0xffff; // of the coordinates
  const CELLS = 64; // of the index that finds the nearest point, in each direction
  const SHIFT = 10; // bits of a coordinate within a cell
  const NO_TILE = 0xffff;
  const MARGIN = 24; // pixels around the map
  const BUTTONS = 24; // pixels at the top, which the buttons cover
  const MOST_STRETCHED = 1.4;
  const REACH = 14; // pixels within which a point is found
  const FARTHEST = 60; // times that one can zoom in
  const THUMBNAIL = 112; // pixels
  const number = (value) => value.toLocaleString("en-US");
  const percent = (value) => `${Math.round((100 * value) / data.confidenceUnit)} %`;

  // What can be chosen: how points are grouped by color, and which of them are shown.
  const FILTERS = {
    unsure: (i) => confidence[i] < data.unsure,
    wrong: (i) => labels[i] >= 0 && labels[i] !== predicted[i],
    outlier: (i) => outlier[i] === 1,
    suspect: (i) => suspect[i] === 1,
  };
  const STEPS = [0, 50, 70, 90, 99, 100]; // of confidence, in percent
  const classGroups = () => data.groups.map((group) => ({ ...group, shown: true, count: 0 }));
  const COLORINGS = {
    predicted: {
      groups: classGroups(),
      of: (i) => data.groupOfClass[predicted[i]],
      layer: (at, group) => (group.pale ? 0 : 1),
    },
    label: {
      groups: [...classGroups(), { name: "no label", color: "faint", shape: 0, pale: true, shown: true, count: 0 }],
      of: (i) => (labels[i] < 0 ? data.groups.length : data.groupOfClass[labels[i]]),
      layer: (at, group) => (group.pale ? 0 : 1),
    },
    confidence: {
      groups: STEPS.slice(1).map((high, at) => ({
        name: at ? `${STEPS[at]} to ${high} %` : `below ${high} %`,
        mix: at / (STEPS.length - 2),
        shape: 0,
        shown: true,
        count: 0,
      })),
      of: (i) => {
        const value = (100 * confidence[i]) / data.confidenceUnit;
        return STEPS.slice(1, -1).filter((edge) => value >= edge).length;
      },
      layer: (at) => STEPS.length - at, // the least confident on top
    },
  };

  const canvas = byId("canvas");
  const context = canvas.getContext("2d");
  const tip = byId("tip");
  const view = { x: SPAN / 2, y: SPAN / 2, zoom: 1 }; // the point in the middle
  // In pixels; the middle is where the view's middle is drawn, a unit is one step of a coordinate.
  const size = { width: 0, height: 0, middleX: 0, middleY: 0, unitX: 1, unitY: 1, ratio: 1 };
  const groupOf = new Uint16Array(total);
  const cellStart = new Int32Array(CELLS * CELLS + 1);
  let cellItems = new Int32Array(0);
  let order = new Int32Array(0); // pictures shown, the topmost last
  let coloring = COLORINGS.predicted;
  let hovered = -1;
  let kept = -1; // chosen by a click or by keyboard
  let frame = 0;

  // A fixed random order, so that no class always covers the others.
  const shuffled = Int32Array.from({ length: total }, (_, i) => i);
  for (let i = total - 1, state = 1; i > 0; i--) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (i + 1));
    [shuffled[i], shuffled[other]] = [shuffled[other], shuffled[i]];
  }

  // Colors

  const colors = new Map(); // of the theme, by role

  function hex(role) {
    if (!colors.has(role)) colors.set(role, getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim());
    return colors.get(role);
  }

  const mixed = (from, to, part) => {
    const [one, other] = [from, to].map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
    return `rgb(${one.map((value, at) => Math.round(value + part * (other[at] - value))).join(" ")})`;
  };
  const colorOf = (group) => (group.color ? hex(group.color) : mixed(hex("two"), hex("one"), group.mix));

  function tracePath(target, shape, x, y, radius) {
    target.beginPath();
    const polygon = (...corners) => {
      corners.forEach(([dx, dy], at) => target[at ? "lineTo" : "moveTo"](x + dx * radius, y + dy * radius));
      target.closePath();
    };
    if (shape === 0) target.arc(x, y, radius, 0, 2 * Math.PI);
    if (shape === 1) polygon([0, -1.3], [1.15, 0.8], [-1.15, 0.8]);
    if (shape === 2) target.rect(x - 0.9 * radius, y - 0.9 * radius, 1.8 * radius, 1.8 * radius);
    if (shape === 3) polygon([0, -1.4], [1.1, 0], [0, 1.4], [-1.1, 0]);
    if (shape === 4) {
      const [a, b] = [0.42, 1.25];
      polygon([-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]);
    }
    if (shape === 5) polygon([0, 1.3], [1.15, -0.8], [-1.15, -0.8]);
  }

  function drawMarker(target, group, x, y, radius, outlined) {
    tracePath(target, group.shape, x, y, radius);
    target.globalAlpha = group.pale ? 0.45 : 1;
    target.fillStyle = colorOf(group);
    target.fill();
    target.globalAlpha = 1;
    if (!outlined && radius < 2.5) return;
    target.lineWidth = outlined ? 1.25 : 0.6;
    target.strokeStyle = hex(outlined ? "ink" : "panel");
    target.stroke();
  }

  const sprites = new Map();

  /** A marker drawn once: copying it thousands of times is quick. */
  function spriteOf(group, outlined, radius) {
    const key = `${group} ${outlined} ${radius}`;
    if (!sprites.has(key)) {
      const sprite = document.createElement("canvas");
      sprite.width = sprite.height = 2 * Math.ceil((1.5 * radius + 2) * size.ratio);
      const target = sprite.getContext("2d");
      target.scale(size.ratio, size.ratio);
      const middle = sprite.width / size.ratio / 2;
      drawMarker(target, coloring.groups[group], middle, middle, radius, outlined);
      sprites.set(key, sprite);
    }
    return sprites.get(key);
  }

  // Places

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const scaleX = () => size.unitX * view.zoom;
  const scaleY = () => size.unitY * view.zoom;
  const toScreen = (i) => [
    size.middleX + (points[2 * i] - view.x) * scaleX(),
    size.middleY + (points[2 * i + 1] - view.y) * scaleY(),
  ];
  const toMap = (x, y) => [view.x + (x - size.middleX) / scaleX(), view.y + (y - size.middleY) / scaleY()];

  function isInView(i) {
    const [x, y] = i < 0 ? [-1, -1] : toScreen(i);
    return x >= 0 && y >= 0 && x <= size.width && y <= size.height;
  }

  /** Zoom around a place: by default the picture that is open, or else the middle. */
  function zoomAt(factor, ...place) {
    const [x, y] = place.length ? place : isInView(kept) ? toScreen(kept) : [size.middleX, size.middleY];
    const [mapX, mapY] = toMap(x, y);
    view.zoom = clamp(view.zoom * factor, 1, FARTHEST);
    view.x = mapX - (x - size.middleX) / scaleX();
    view.y = mapY - (y - size.middleY) / scaleY();
    moved();
  }

  function pan(dx, dy) {
    view.x -= dx / scaleX();
    view.y -= dy / scaleY();
    moved();
  }

  function moved() {
    [view.x, view.y] = [clamp(view.x, 0, SPAN), clamp(view.y, 0, SPAN)];
    // At first a finger scrolls the page; once the map is zoomed, it moves the map.
    canvas.style.touchAction = view.zoom > 1 ? "none" : "pan-x pan-y";
    redraw();
  }

  function reset() {
    Object.assign(view, { x: SPAN / 2, y: SPAN / 2, zoom: 1 });
    moved();
  }

  // Choosing what is shown

  function refresh() {
    coloring = COLORINGS[byId("coloring").value];
    const part = byId("part").value;
    const boxes = [...document.querySelectorAll(".map-controls input:checked")];
    const chosen = boxes.map((box) => FILTERS[box.value]);
    coloring.groups.forEach((group) => (group.count = 0));
    const layers = new Uint8Array(total);
    order = shuffled.filter((i) => {
      if (part !== "" && parts[i] !== Number(part)) return false;
      if (chosen.length && !chosen.some((matches) => matches(i))) return false;
      groupOf[i] = coloring.of(i);
      const group = coloring.groups[groupOf[i]];
      group.count++;
      layers[i] = 2 * coloring.layer(groupOf[i], group) + (parts[i] === data.outlinedPart ? 1 : 0);
      return group.shown;
    });
    order.sort((one, other) => layers[one] - layers[other]);
    if (!order.includes(kept)) kept = -1;
    hovered = -1;
    indexCells();
    byId("count").textContent = `${number(order.length)} of ${number(total)} pictures`;
    recolor();
  }

  /** Sort the pictures by cell, so that the nearest one is found by looking at a few cells. */
  function indexCells() {
    const cellOf = (i) => (points[2 * i + 1] >> SHIFT) * CELLS + (points[2 * i] >> SHIFT);
    cellStart.fill(0);
    for (const i of order) cellStart[cellOf(i) + 1]++;
    for (let cell = 0; cell < CELLS * CELLS; cell++) cellStart[cell + 1] += cellStart[cell];
    const next = cellStart.slice();
    cellItems = new Int32Array(order.length);
    for (const i of order) cellItems[next[cellOf(i)]++] = i;
  }

  function nearest(x, y) {
    const [mapX, mapY] = toMap(x, y);
    const [reachX, reachY] = [REACH / scaleX(), REACH / scaleY()];
    const cell = (value) => clamp(Math.floor(value), 0, SPAN) >> SHIFT;
    let [best, least] = [-1, REACH];
    for (let row = cell(mapY - reachY); row <= cell(mapY + reachY); row++) {
      const start = cellStart[row * CELLS + cell(mapX - reachX)];
      const end = cellStart[row * CELLS + cell(mapX + reachX) + 1];
      for (let at = start; at < end; at++) {
        const i = cellItems[at];
        const [dx, dy] = [(points[2 * i] - mapX) * scaleX(), (points[2 * i + 1] - mapY) * scaleY()];
        const distance = Math.hypot(dx, dy);
        if (distance <= least) [best, least] = [i, distance];
      }
    }
    return best;
  }

  /** The nearest picture in a direction, or the one nearest to the middle of the view. */
  function neighbor(from, right, down) {
    const [x, y] = from < 0 ? [view.x, view.y] : [points[2 * from], points[2 * from + 1]];
    let [best, least] = [-1, Infinity];
    for (const i of order) {
      const [dx, dy] = [(points[2 * i] - x) * size.unitX, (points[2 * i + 1] - y) * size.unitY];
      const distance = Math.hypot(dx, dy);
      if (i === from || distance >= least) continue;
      const [along, across] = [dx * right + dy * down, Math.abs(dx * down) + Math.abs(dy * right)];
      if (from < 0 || (along > 0 && across <= along)) [best, least] = [i, distance];
    }
    return best;
  }

  // Drawing

  function redraw() {
    if (!frame)
      frame = requestAnimationFrame(() => {
        frame = 0;
        draw();
      });
  }

  function radiusNow() {
    const room = Math.sqrt((size.width * size.height) / Math.max(order.length, 1));
    const radius = Math.min(clamp(0.2 * room, 1.6, 5) * Math.sqrt(view.zoom), 8);
    return Math.round(8 * radius) / 8; // few sizes, since every one needs sprites of its own
  }

  function draw() {
    const ratio = size.ratio;
    const radius = radiusNow();
    const [factorX, factorY] = [scaleX() * ratio, scaleY() * ratio];
    const [left, top] = [size.middleX * ratio - view.x * factorX, size.middleY * ratio - view.y * factorY];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const groups = coloring.groups.map((_, group) => [
      spriteOf(group, false, radius),
      spriteOf(group, true, Math.max(1.15 * radius, 3.2)),
    ]);
    let drawn = 0;
    for (const i of order) {
      const sprite = groups[groupOf[i]][parts[i] === data.outlinedPart ? 1 : 0];
      const half = sprite.width / 2;
      const x = Math.round(left + points[2 * i] * factorX - half);
      const y = Math.round(top + points[2 * i + 1] * factorY - half);
      if (x <= -sprite.width || y <= -sprite.width || x >= canvas.width || y >= canvas.height) continue;
      context.drawImage(sprite, x, y);
      drawn++;
    }
    canvas.dataset.drawn = drawn;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const i of new Set([kept, hovered])) if (i >= 0) drawRing(i, radius);
    showTip(hovered >= 0 ? hovered : kept);
  }

  function drawRing(i, radius) {
    const [x, y] = toScreen(i);
    drawMarker(context, coloring.groups[groupOf[i]], x, y, 1.5 * radius, false);
    for (const [width, role] of [[5, "paper"], [2.5, "ink"]]) {
      context.beginPath();
      context.arc(x, y, 2.2 * radius + 3, 0, 2 * Math.PI);
      context.lineWidth = width;
      context.strokeStyle = hex(role);
      context.stroke();
    }
  }

  // The legend, which also hides and shows groups

  function showLegend() {
    const focused = [...byId("groups").children].findIndex((item) => item.contains(document.activeElement));
    byId("groups").replaceChildren(...coloring.groups.map(makeEntry));
    if (focused >= 0) byId("groups").children[focused]?.firstChild.focus();
  }

  function makeEntry(group) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", group.shown);
    const swatch = document.createElement("canvas");
    swatch.width = swatch.height = Math.round(16 * size.ratio);
    const target = swatch.getContext("2d");
    target.scale(size.ratio, size.ratio);
    drawMarker(target, group, 8, 8, 5, false);
    button.append(swatch, makeLine(group.name), makeLine(number(group.count), "map-number"));
    button.addEventListener("click", () => {
      group.shown = !group.shown;
      refresh();
    });
    const item = document.createElement("li");
    item.append(button);
    return item;
  }

  function makeLine(text, name = "") {
    const line = document.createElement("span");
    line.textContent = text;
    line.className = name;
    return line;
  }

  function showAll(shown) {
    coloring.groups.forEach((group) => (group.shown = shown));
    refresh();
  }

  // One picture: its thumbnail and what is known about it

  const sheets = data.sheets.map(() => null);

  function sheetOf(tile) {
    const at = Math.floor(tile / data.perSheet);
    if (!sheets[at]) {
      sheets[at] = new Image();
      sheets[at].addEventListener("load", redraw);
      sheets[at].src = `data:image/jpeg;base64,${data.sheets[at]}`;
    }
    return sheets[at];
  }

  function describe(i) {
    const odd = [outlier[i] && "outlier", suspect[i] && "the label looks wrong"].filter(Boolean);
    return {
      name: data.names[i],
      label: labels[i] < 0 ? "no label" : `label ${data.classes[labels[i]]}`,
      prediction: `predicted ${data.classes[predicted[i]]}`,
      wrong: FILTERS.wrong(i),
      confidence: `${percent(confidence[i])} confident`,
      odd: odd.join(", "),
    };
  }

  function showTip(i) {
    tip.hidden = !isInView(i);
    if (tip.hidden) return;
    tip.classList.toggle("kept", i === kept);
    if (tip.dataset.picture !== String(i)) {
      const facts = describe(i);
      byId("lines").replaceChildren(
        makeLine(facts.prediction, facts.wrong ? "odd" : ""),
        makeLine(facts.confidence),
        makeLine(facts.label),
        ...(facts.odd ? [makeLine(facts.odd, "odd")] : []),
        makeLine(facts.name, "name"),
      );
      tip.dataset.picture = i;
    }
    drawThumbnail(i);
    placeTip(i);
  }

  function drawThumbnail(i) {
    const thumbnail = byId("thumbnail");
    thumbnail.hidden = tiles[i] === NO_TILE;
    if (thumbnail.hidden) return;
    const [width, height] = data.tile;
    const factor = (THUMBNAIL / Math.max(width, height)) * size.ratio;
    [thumbnail.width, thumbnail.height] = [Math.round(width * factor), Math.round(height * factor)];
    thumbnail.style.width = `${thumbnail.width / size.ratio}px`;
    const sheet = sheetOf(tiles[i]);
    const place = tiles[i] % data.perSheet;
    const [x, y] = [(place % data.columns) * data.cell[0], Math.floor(place / data.columns) * data.cell[1]];
    const target = thumbnail.getContext("2d");
    target.imageSmoothingEnabled = Math.max(width, height) > 40; // tiny pictures are clearer as squares
    if (sheet.complete) target.drawImage(sheet, x, y, width, height, 0, 0, thumbnail.width, thumbnail.height);
  }

  /** Beside the point where there is room, or else below or above it. */
  function placeTip(i) {
    const [x, y] = toScreen(i);
    const gap = 2.2 * radiusNow() + 12;
    const { offsetWidth: width, offsetHeight: height } = tip;
    let [left, top] = [x + gap, y - height / 2];
    if (left + width > size.width) left = x - gap - width;
    if (left < 0) [left, top] = [x - width / 2, y + gap + height <= size.height ? y + gap : y - gap - height];
    tip.style.left = `${clamp(left, 4, Math.max(4, size.width - width - 4))}px`;
    tip.style.top = `${clamp(top, 4, Math.max(4, size.height - height - 4))}px`;
  }

  function keep(i) {
    kept = i;
    hovered = -1;
    if (i >= 0) {
      const facts = describe(i);
      const texts = [facts.name, facts.label, facts.prediction, facts.confidence, facts.odd];
      byId("spoken").textContent = texts.filter(Boolean).join(", ");
    } else byId("spoken").textContent = "";
    redraw();
  }

  function keepInView(i) {
    if (isInView(i)) return;
    [view.x, view.y] = [points[2 * i], points[2 * i + 1]];
    moved();
  }

  // Mouse, fingers and keys

  const pointers = new Map();
  let dragged = false;
  const local = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    if (pointers.size === 1) dragged = false;
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = local(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      hovered = nearest(x, y);
      canvas.classList.toggle("near", hovered >= 0);
      redraw();
      return;
    }
    if (!dragged && pointers.size === 1 && Math.hypot(x - before[0], y - before[1]) < 4) return;
    dragged = true;
    hovered = -1;
    canvas.classList.add("moving");
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = ([ax, ay], [bx, by]) => Math.max(Math.hypot(ax - bx, ay - by), 1);
      zoomAt(distance([x, y], other) / distance(before, other), (x + other[0]) / 2, (y + other[1]) / 2);
    }
    pan((x - before[0]) / pointers.size, (y - before[1]) / pointers.size);
    pointers.set(event.pointerId, [x, y]);
  });

  canvas.addEventListener("pointerup", (event) => {
    if (pointers.size === 1 && !dragged) keep(nearest(...local(event)));
  });

  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      if (!pointers.size) canvas.classList.remove("moving");
    });

  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    redraw();
  });

  // The wheel zooms once the map was clicked; before, it scrolls the page as everywhere else.
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      if (event.deltaY > 0 && view.zoom === 1) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 30 : 1;
      zoomAt(Math.exp(-0.002 * event.deltaY * lines), ...local(event));
    },
    { passive: false },
  );

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const KEYS = {
    "+": () => zoomAt(1.5),
    "=": () => zoomAt(1.5),
    "-": () => zoomAt(1 / 1.5),
    0: reset,
    Escape: () => {
      keep(-1);
      canvas.blur();
    },
  };

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = ARROWS[event.key];
    if (!direction && !KEYS[event.key]) return;
    event.preventDefault();
    if (!direction) return KEYS[event.key]();
    const next = neighbor(kept, ...direction);
    if (next < 0) {
      byId("spoken").textContent = "no picture in this direction";
      return;
    }
    keep(next);
    keepInView(next);
  });

  byId("in").addEventListener("click", () => zoomAt(1.5));
  byId("out").addEventListener("click", () => zoomAt(1 / 1.5));
  byId("reset").addEventListener("click", reset);
  byId("all").addEventListener("click", () => showAll(true));
  byId("none").addEventListener("click", () => showAll(false));
  document.querySelector(".map-controls").addEventListener("change", refresh);

  // Size and theme

  function measure() {
    const { clientWidth: width, clientHeight: height } = canvas;
    // The axes have no unit, so a wide or tall canvas may stretch the map.
    const room = [width - 2 * MARGIN, height - 2 * MARGIN - BUTTONS].map((length) => Math.max(length, 1));
    const [unitX, unitY] = room.map((length) => Math.min(length, MOST_STRETCHED * Math.min(...room)) / SPAN);
    const [middleX, middleY] = [width / 2, (height + BUTTONS) / 2];
    Object.assign(size, { width, height, middleX, middleY, unitX, unitY, ratio: devicePixelRatio || 1 });
    [canvas.width, canvas.height] = [Math.round(width * size.ratio), Math.round(height * size.ratio)];
    recolor();
    draw(); // at once, since a new size empties the canvas
  }

  function recolor() {
    colors.clear();
    sprites.clear();
    showLegend();
    redraw();
  }

  byId("body").hidden = false;
  refresh();
  moved();
  new ResizeObserver(measure).observe(canvas);
  addEventListener("resize", measure); // the zoom of the browser changes the pixels
  new MutationObserver(recolor).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
})();
