(() => {
    "use strict";
    const DEEPEST = 2000, STEP = 1.6; // times the whole timeline
    const view = document.currentScript.closest(".pipecast-view");
    const data = JSON.parse(view.querySelector("script[type='application/json']").textContent);
    const picture = view.querySelector(":scope > svg"), plot = picture.querySelector("svg.passes");
    const numbers = picture.querySelector(".numbers"), axis = picture.querySelector(".axis");
    const tip = view.querySelector(".tip");
    const left = plot.x.baseVal.value, wide = plot.width.baseVal.value, high = plot.height.baseVal.value;
    const rows = data.rows.length, rowHigh = high / rows;
    const now = { from: 0, size: data.ticks };

    const element = (name, attributes, text) => {
        const made = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        if (text !== undefined) made.textContent = text;
        return made;
    };
    const across = (tick) => left + (tick - now.from) / now.size * wide;

    // Times of a run in milliseconds; of a schedule in the unit of its costs.
    const timeOf = (tick) => tick / data.ticks * data.length * (data.isRun ? 1000 : 1);
    const words = (time, digits) => `${Number(time.toPrecision(digits))}${data.isRun ? " ms" : ""}`;

    function stepOf(length) {
        const size = 10 ** Math.floor(Math.log10(length / 5));
        return [1, 2, 5, 10].map((one) => one * size).find((one) => length / one <= 8) || length;
    }

    function drawAxis() {
        const perTick = timeOf(1), from = now.from * perTick, length = now.size * perTick, step = stepOf(length);
        const marks = [];
        for (let i = Math.ceil(from / step - 1e-9); i * step <= from + length * (1 + 1e-9); i++) {
            const x = across(i * step / perTick);
            marks.push(element("line", { class: "line", x1: x, x2: x, y1: -high, y2: 4 }),
                element("text", { x, y: 16, "text-anchor": "middle" }, words(i * step, 7)));
        }
        axis.replaceChildren(...marks);
    }

    // The passes of a row that are seen are those from the first that ends behind the left edge.
    function firstSeen(row) {
        let low = 0, up = row.length;
        while (low < up) {
            const middle = (low + up) >> 1;
            if (row[middle][1] <= now.from) low = middle + 1; else up = middle;
        }
        return low;
    }

    function drawNumbers() {
        const made = [];
        for (let device = 0; device < rows && rowHigh >= 10; device++) {
            const row = data.rows[device];
            for (let i = firstSeen(row); i < row.length && row[i][0] < now.from + now.size; i++) {
                const [first, last, kind, , microbatch] = row[i];
                const text = String(microbatch), room = (last - first) / now.size * wide;
                const x = across((first + last) / 2);
                if (room < 7 * text.length + 3 || x < left || x > left + wide) continue;
                made.push(element("text", { x, y: (device + 0.5) * rowHigh + 3.5,
                    style: `fill:${data.kinds[kind] === "W" ? "#000" : "#fff"}` }, text));
            }
        }
        numbers.replaceChildren(...made);
    }

    function show(from, size) {
        now.size = Math.min(data.ticks, Math.max(data.ticks / DEEPEST, size));
        now.from = Math.min(data.ticks - now.size, Math.max(0, from));
        for (const part of picture.querySelectorAll("svg.time")) {
            part.setAttribute("viewBox", `${now.from} 0 ${now.size} ${part === plot ? rows : 1}`);
        }
        drawAxis();
        drawNumbers();
    }

    const zoom = (factor, tick = now.from + now.size / 2) => {
        const size = Math.min(data.ticks, Math.max(data.ticks / DEEPEST, now.size / factor));
        show(tick - (tick - now.from) * size / now.size, size);
    };

    // In the picture's own coordinates, however large it is shown.
    function pointOf(event) {
        return new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    }
    const tickAt = (event) => now.from + (pointOf(event).x - left) / wide * now.size;

    function passAt(event) {
        const point = pointOf(event), device = Math.floor(point.y / rowHigh), tick = tickAt(event);
        if (point.x < left || point.x > left + wide || !data.rows[device]) return null;
        const pass = data.rows[device].find((one) => one[0] <= tick && tick < one[1]);
        return pass && { device, pass };
    }

    function showTip(event) {
        const found = passAt(event);
        tip.style.display = found ? "block" : "none";
        if (!found) return;
        const [first, last, kind, chunk, microbatch] = found.pass, box = view.getBoundingClientRect();
        tip.textContent = `device ${found.device}: ${data.kinds[kind]} of microbatch ${microbatch}, part ${chunk + 1}; ` +
            `${words(timeOf(first), 5)} to ${words(timeOf(last), 5)}`;
        const x = event.clientX - box.x + 12;
        tip.style.left = `${Math.max(0, Math.min(x, box.width - tip.offsetWidth - 4))}px`;
        tip.style.top = `${event.clientY - box.y + 14}px`;
    }

    let drag = null;
    picture.addEventListener("pointerdown", (event) => {
        drag = { x: pointOf(event).x, from: now.from };
        picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => {
        if (drag) show(drag.from - (pointOf(event).x - drag.x) / wide * now.size, now.size);
        showTip(event);
    });
    for (const name of ["pointerup", "pointercancel"]) picture.addEventListener(name, () => { drag = null; });
    picture.addEventListener("pointerleave", () => { tip.style.display = "none"; });
    picture.addEventListener("dblclick", () => show(0, data.ticks));
    picture.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
        event.preventDefault();
        zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY || event.deltaX)) * 0.006), tickAt(event));
    }, { passive: false });

    const tools = view.querySelector(".tools");
    const button = (text, title, act) => {
        const made = document.createElement("button");
        Object.assign(made, { type: "button", textContent: text, title });
        made.addEventListener("click", act);
        tools.append(made);
    };
    button("+", "Zoom in (or Ctrl and the wheel)", () => zoom(STEP));
    button("\u2212", "Zoom out", () => zoom(1 / STEP));
    button("\u2039", "Earlier (or drag)", () => show(now.from - now.size / 2, now.size));
    button("\u203a", "Later (or drag)", () => show(now.from + now.size / 2, now.size));
    button("All", "All of it (or a double click)", () => show(0, data.ticks));
    show(0, data.ticks);
})();
