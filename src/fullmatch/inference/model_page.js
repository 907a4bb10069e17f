"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const settings = JSON.parse(find("settings").textContent);
  const [channels, height, width] = settings.shape;

  async function unpack(id) {
    const text = atob(find(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function loadModel() {
    const code = new Blob([await unpack("runtime")], { type: "text/javascript" });
    const ort = await import(URL.createObjectURL(code));
    ort.env.wasm.wasmBinary = (await unpack("wasm")).buffer;
    ort.env.wasm.numThreads = 1; // more need headers that only a server can send
    const options = { executionProviders: ["wasm"] };
    const session = await ort.InferenceSession.create(await unpack("model"), options);
    return async (pixels) => {
      const images = new ort.Tensor("uint8", pixels, [1, channels, height, width]);
      return Array.from((await session.run({ images })).probabilities.data);
    };
  }

  // From here to `toPixels`: what Pillow does to a picture, in its own integer arithmetic. Where it
  // enlarges a picture in one direction and shrinks it in the other, values may differ by 1.

  async function decode(file) {
    const options = { imageOrientation: "from-image", colorSpaceConversion: "none" };
    const bitmap = await createImageBitmap(file, options);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "white"; // behind transparent pictures
    context.fillRect(0, 0, bitmap.width, bitmap.height);
    context.drawImage(bitmap, 0, 0);
    const data = context.getImageData(0, 0, bitmap.width, bitmap.height).data;
    return splitChannels(data, bitmap.width, bitmap.height);
  }

  function splitChannels(data, wide, high) {
    const planes = [];
    for (let channel = 0; channel < channels; channel++) {
      const plane = new Uint8Array(wide * high);
      for (let at = 0; at < plane.length; at++) {
        const [r, g, b] = [data[4 * at], data[4 * at + 1], data[4 * at + 2]];
        const gray = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
        plane[at] = channels === 1 ? gray : data[4 * at + channel];
      }
      planes.push(plane);
    }
    return { planes, wide, high };
  }

  // A JPEG much larger than needed is decoded at a half, a quarter or an eighth of its size.
  function reduce(image, factor) {
    const [wide, high] = [Math.ceil(image.wide / factor), Math.ceil(image.high / factor)];
    const planes = image.planes.map((plane) => {
      const out = new Uint8Array(wide * high);
      for (let y = 0; y < high; y++) {
        for (let x = 0; x < wide; x++) {
          let sum = 0;
          for (let dy = 0; dy < factor; dy++) {
            const row = Math.min(y * factor + dy, image.high - 1) * image.wide;
            for (let dx = 0; dx < factor; dx++) {
              sum += plane[row + Math.min(x * factor + dx, image.wide - 1)];
            }
          }
          out[y * wide + x] = Math.round(sum / (factor * factor));
        }
      }
      return out;
    });
    return { planes, wide, high };
  }

  function draftFactor(wide, high) {
    const side = Math.max(height, width);
    const scale = Math.min(Math.floor(wide / side), Math.floor(high / side));
    return [8, 4, 2].find((factor) => scale >= factor) || 1;
  }

  // The part of the picture that is kept: all of it, or the middle in the model's aspect ratio.
  function chooseBox({ wide, high }) {
    const ratio = width / height;
    if (settings.stretch || wide / high === ratio) return [0, 0, wide, high];
    if (wide / high >= ratio) {
      const left = (wide - ratio * high) * 0.5;
      return [left, 0, left + ratio * high, high];
    }
    const top = (high - wide / ratio) * 0.5;
    return [0, top, wide, top + wide / ratio];
  }

  // Per output position: where its inputs start, and their weights in 1 / 2**22.
  function makeWeights(size, start, end, count) {
    [start, end] = [Math.fround(start), Math.fround(end)];
    const scale = Math.fround(end - start) / count;
    const support = Math.max(scale, 1);
    return Array.from({ length: count }, (_, at) => {
      const center = start + (at + 0.5) * scale;
      const first = Math.max(0, Math.trunc(center - support + 0.5));
      const last = Math.min(size, Math.trunc(center + support + 0.5));
      const weights = [];
      let total = 0;
      for (let x = first; x < last; x++) {
        const weight = Math.max(0, 1 - Math.abs((x - center + 0.5) / support));
        weights.push(weight);
        total += weight;
      }
      return { first, weights: weights.map((w) => Math.trunc(0.5 + (w / total) * 4194304)) };
    });
  }

  const round = (sum) => Math.min(255, Math.max(0, sum >> 22));

  function resize(plane, wide, high, [left, top, right, bottom]) {
    let rows = plane;
    if (width !== wide || left || right !== width) {
      rows = new Uint8Array(width * high);
      makeWeights(wide, left, right, width).forEach(({ first, weights }, x) => {
        for (let y = 0; y < high; y++) {
          let sum = 2097152;
          for (let k = 0; k < weights.length; k++) sum += plane[y * wide + first + k] * weights[k];
          rows[y * width + x] = round(sum);
        }
      });
    }
    if (height === high && !top && bottom === height) return rows;
    const out = new Uint8Array(width * height);
    makeWeights(high, top, bottom, height).forEach(({ first, weights }, y) => {
      for (let x = 0; x < width; x++) {
        let sum = 2097152;
        for (let k = 0; k < weights.length; k++) sum += rows[(first + k) * width + x] * weights[k];
        out[y * width + x] = round(sum);
      }
    });
    return out;
  }

  async function toPixels(file) {
    let image = await decode(file);
    const head = new Uint8Array(await file.slice(0, 3).arrayBuffer());
    const jpeg = head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff;
    const factor = jpeg ? draftFactor(image.wide, image.high) : 1;
    if (factor > 1) image = reduce(image, factor);
    const box = chooseBox(image);
    const pixels = new Uint8Array(channels * height * width);
    image.planes.forEach((plane, channel) => {
      const values = resize(plane, image.wide, image.high, box);
      pixels.set(values, channel * height * width);
    });
    return pixels;
  }

  // The page itself.

  function add(parent, name, text = "", className = "") {
    const element = document.createElement(name);
    element.textContent = text;
    if (className) element.className = className;
    parent.append(element);
    return element;
  }

  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function showClasses(card, probabilities) {
    const order = probabilities.map((_, code) => code);
    order.sort((a, b) => probabilities[b] - probabilities[a]);
    const best = probabilities[order[0]];
    add(card, "p", settings.classes[order[0]], "label");
    if (best < settings.unsure) add(card, "p", "Unsure: look at this one yourself.", "unsure");
    const list = add(card, "ol", "", "bars");
    for (const code of order.slice(0, settings.top)) {
      const row = add(list, "li");
      add(row, "span", settings.classes[code]);
      add(row, "span", percent(probabilities[code]), "share");
      const bar = add(row, "meter");
      bar.value = probabilities[code];
    }
  }

  async function classify(model, file) {
    const card = document.createElement("article");
    card.className = "card picture";
    const picture = add(card, "img");
    picture.src = URL.createObjectURL(file);
    picture.alt = "";
    const text = add(card, "div");
    add(text, "p", file.name, "faint name");
    find("results").prepend(card);
    try {
      const pixels = await toPixels(file);
      showClasses(text, await model(pixels));
    } catch {
      picture.remove();
      add(text, "p", "This file cannot be read as a picture.", "unsure");
    }
    card.dataset.done = "yes";
  }

  async function begin() {
    const status = find("status");
    let model;
    try {
      model = await loadModel();
    } catch (error) {
      status.textContent = `The model cannot run in this browser: ${error.message}`;
      return;
    }
    status.textContent = "Ready. Your pictures stay on this computer.";
    let queue = Promise.resolve();
    const take = (files) => {
      for (const file of files) queue = queue.then(() => classify(model, file));
    };
    const input = find("pictures");
    input.disabled = false;
    input.addEventListener("change", () => {
      take([...input.files]);
      input.value = "";
    });
    const zone = find("drop");
    for (const name of ["dragover", "dragenter"]) {
      zone.addEventListener(name, (event) => {
        event.preventDefault();
        zone.classList.add("over");
      });
    }
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    for (const name of ["dragover", "drop"]) {
      // Beside the zone, the browser would open the picture instead of the page.
      window.addEventListener(name, (event) => event.preventDefault());
    }
    window.addEventListener("drop", (event) => {
      zone.classList.remove("over");
      take([...event.dataTransfer.files]);
    });
  }

  begin();
})();
