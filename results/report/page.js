"use strict";
// Timelines that zoom, words for what is under the pointer, tables that sort. The page reads well without any of it.
(() => {
    const DEEPEST = 60; // times the whole picture
    const STEP = 1.5;
    const NEAR = 14; // pixels

    // --- words for what is under the pointer ---

    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    tip.setAttribute("role", "status");
    document.body.append(tip);

    // A shape's <title> becomes an attribute when it is first needed, or the browser would show its own box as well.
    function wordsOf(shape) {
        const title = shape.querySelector(":scope > title");
        if (title) {
            shape.dataset.title = title.textContent;
            title.remove();
        }
        return shape.dataset.title || "";
    }

    // The nearest shape with words; a picture as a whole has none here.
    function shapeAt(target) {
        for (let one = target; one && one.ownerSVGElement; one = one.parentNode) {
            if (wordsOf(one)) return one;
        }
        return null;
    }

    function placeTip(event) {
        const gap = 14, box = tip.getBoundingClientRect(), room = document.documentElement;
        let x = event.clientX + gap, y = event.clientY + gap;
        if (x + box.width > room.clientWidth - 4) x = Math.max(4, event.clientX - gap - box.width);
        if (y + box.height > room.clientHeight - 4) y = Math.max(4, event.clientY - gap - box.height);
        tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    }

    function fillTip(words) {
        const cut = words.lastIndexOf(": ");
        const head = document.createElement("strong");
        head.textContent = cut < 0 ? words : words.slice(0, cut);
        tip.replaceChildren(head, cut < 0 ? "" : words.slice(cut + 2));
    }

    let hot = null;

    function markSame(svg, shape) {
        svg.querySelectorAll(".hot, .same").forEach((one) => one.classList.remove("hot", "same"));
        if (!shape) return;
        shape.classList.add("hot");
        const { panel, microbatch } = shape.dataset;
        if (microbatch === undefined) return;
        const same = `[data-panel="${CSS.escape(panel)}"][data-microbatch="${CSS.escape(microbatch)}"]`;
        svg.querySelectorAll(same).forEach((one) => one.classList.add("same"));
    }

    function showShape(svg, shape, event) {
        if (shape !== hot) {
            hot = shape;
            markSame(svg, shape);
            tip.hidden = !shape;
            if (shape) fillTip(wordsOf(shape));
        }
        if (shape) placeTip(event);
    }

    // Points of a chart are small: near one is on it.
    function pointNear(points, event) {
        let nearest = null, least = NEAR * NEAR;
        for (const point of points) {
            const box = point.getBoundingClientRect();
            const right = event.clientX - box.x - box.width / 2, down = event.clientY - box.y - box.height / 2;
            if (right * right + down * down < least) {
                least = right * right + down * down;
                nearest = point;
            }
        }
        return nearest;
    }

    function addWords(svg) {
        const points = [...svg.querySelectorAll("use")].filter((one) => wordsOf(one));
        const show = (event) => showShape(svg, pointNear(points, event) || shapeAt(event.target), event);
        svg.addEventListener("pointermove", show);
        svg.addEventListener("pointerdown", show);
        svg.addEventListener("pointerleave", (event) => showShape(svg, null, event));
    }

    // --- zoom: a smaller viewBox, within the whole one ---

    function makeView(svg) {
        const whole = svg.viewBox.baseVal;
        const full = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
        const now = { ...full };
        const view = { svg, full, now, changed: () => {} };
        view.set = (x, y, width) => {
            now.width = Math.min(full.width, Math.max(full.width / DEEPEST, width));
            now.height = now.width * full.height / full.width;
            now.x = Math.min(full.x + full.width - now.width, Math.max(full.x, x));
            now.y = Math.min(full.y + full.height - now.height, Math.max(full.y, y));
            svg.setAttribute("viewBox", `${now.x} ${now.y} ${now.width} ${now.height}`);
            svg.classList.toggle("zoomed", now.width < full.width);
            view.changed();
        };
        view.reset = () => view.set(full.x, full.y, full.width);
        // What lies at (x, y) stays where it is.
        view.zoom = (factor, x = now.x + now.width / 2, y = now.y + now.height / 2) => {
            const width = Math.min(full.width, Math.max(full.width / DEEPEST, now.width / factor));
            const kept = width / now.width;
            view.set(x - (x - now.x) * kept, y - (y - now.y) * kept, width);
        };
        view.pan = (right, down) => view.set(now.x + right * now.width, now.y + down * now.height, now.width);
        return view;
    }

    function pointOf(svg, event) {
        return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    }

    function zoomByWheel(view) {
        view.svg.addEventListener("wheel", (event) => {
            if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
            event.preventDefault();
            const point = pointOf(view.svg, event);
            view.zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) * 0.004), point.x, point.y);
        }, { passive: false });
        view.svg.addEventListener("dblclick", (event) => {
            event.preventDefault();
            view.reset();
        });
    }

    function panByDrag(view) {
        const svg = view.svg;
        let from = null;
        svg.addEventListener("pointerdown", (event) => {
            if (event.button !== 0 || !svg.classList.contains("zoomed")) return;
            from = { x: event.clientX, y: event.clientY };
            svg.setPointerCapture(event.pointerId);
            svg.classList.add("dragged");
        });
        svg.addEventListener("pointermove", (event) => {
            if (!from) return;
            const scale = svg.getScreenCTM().a;
            view.set(view.now.x - (event.clientX - from.x) / scale, view.now.y - (event.clientY - from.y) / scale,
                view.now.width);
            from = { x: event.clientX, y: event.clientY };
        });
        const stop = () => {
            from = null;
            svg.classList.remove("dragged");
        };
        svg.addEventListener("pointerup", stop);
        svg.addEventListener("pointercancel", stop);
    }

    function moveByKeys(view) {
        const keys = {
            "+": () => view.zoom(STEP), "=": () => view.zoom(STEP), "-": () => view.zoom(1 / STEP), "0": view.reset,
            "Escape": view.reset, "ArrowLeft": () => view.pan(-0.15, 0), "ArrowRight": () => view.pan(0.15, 0),
            "ArrowUp": () => view.pan(0, -0.15), "ArrowDown": () => view.pan(0, 0.15),
        };
        view.svg.addEventListener("keydown", (event) => {
            const isArrow = event.key.startsWith("Arrow");
            if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
            if (isArrow && !view.svg.classList.contains("zoomed")) return; // the page scrolls
            event.preventDefault();
            keys[event.key]();
        });
    }

    function addButtons(view, figure) {
        const tools = document.createElement("div");
        tools.className = "tools";
        const add = (text, name, act) => {
            const button = document.createElement("button");
            Object.assign(button, { type: "button", textContent: text, title: name });
            button.setAttribute("aria-label", name);
            button.addEventListener("click", act);
            tools.append(button);
            return button;
        };
        const near = add("+", "Zoom in (or Ctrl and the wheel, or the key +)", () => view.zoom(STEP));
        const far = add("\u2212", "Zoom out", () => view.zoom(1 / STEP));
        const all = add("Reset", "Show all of it (or a double click)", view.reset);
        view.changed = () => {
            near.disabled = view.now.width <= view.full.width / DEEPEST;
            far.disabled = all.disabled = view.now.width >= view.full.width;
        };
        view.changed();
        figure.prepend(tools);
    }

    for (const svg of document.querySelectorAll("figure svg")) addWords(svg);
    for (const figure of document.querySelectorAll("figure.timeline")) {
        const view = makeView(figure.querySelector("svg"));
        zoomByWheel(view);
        panByDrag(view);
        moveByKeys(view);
        addButtons(view, figure);
    }

    // --- tables sort by a click on a column's name: up, down, as they were ---

    function numberIn(text) {
        const found = text.replace(/,/g, "").replace(/\u2212/g, "-").match(/^[^\d\w-]*(-?\d+(\.\d+)?(e[-+]?\d+)?)/i);
        return found ? Number(found[1]) : NaN;
    }

    // Numbers first, by value; then words.
    function compare(a, b) {
        const x = numberIn(a), y = numberIn(b);
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        return Number.isNaN(x) ? a.localeCompare(b) : x - y;
    }

    function sortBy(head, index, rows, body) {
        const order = { null: "ascending", ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        for (const one of head.parentNode.children) one.removeAttribute("aria-sort");
        if (order) head.setAttribute("aria-sort", order);
        const sign = { ascending: 1, descending: -1 }[order] || 0;
        const text = (row) => row.cells[index].textContent.trim();
        body.append(...(sign ? [...rows].sort((a, b) => sign * compare(text(a), text(b))) : rows));
    }

    for (const table of document.querySelectorAll("table")) {
        const body = table.tBodies[0], rows = [...body.rows];
        const belongTogether = rows.some((row) => !row.cells[0].textContent.trim()); // said once for several rows
        if (rows.length < 4 || belongTogether) continue;
        [...table.tHead.rows[0].cells].forEach((head, index) => {
            const button = document.createElement("button");
            button.append(...head.childNodes);
            button.type = "button";
            head.append(button);
            button.addEventListener("click", () => sortBy(head, index, rows, body));
        });
    }

    // --- the part that is being read, in the contents ---

    const entries = [...document.querySelectorAll(".contents a")];
    const links = new Map(entries.map((a) => [a.getAttribute("href").slice(1), a]));
    const heads = [...document.querySelectorAll("main h2, main h3")].filter((head) => links.has(head.id));

    function keepInSight(link) {
        const list = link.closest(".contents"), frame = list.getBoundingClientRect(), box = link.getBoundingClientRect();
        if (box.top < frame.top || box.bottom > frame.bottom) list.scrollTop += box.top - frame.top - frame.height / 2;
    }

    function showWhere() {
        const passed = heads.filter((head) => head.getBoundingClientRect().top < 120);
        const current = passed.length ? links.get(passed[passed.length - 1].id) : null;
        for (const link of links.values()) {
            if (link === current) link.setAttribute("aria-current", "true");
            else link.removeAttribute("aria-current");
        }
        if (current) keepInSight(current);
    }

    let isWaiting = false;
    addEventListener("scroll", () => {
        if (isWaiting) return;
        isWaiting = true;
        requestAnimationFrame(() => {
            isWaiting = false;
            showWhere();
        });
    }, { passive: true });
    showWhere();

    // --- on paper everything is unfolded ---

    let folded = [];
    addEventListener("beforeprint", () => {
        folded = [...document.querySelectorAll("details:not([open])")];
        for (const one of folded) one.open = true;
    });
    addEventListener("afterprint", () => {
        for (const one of folded) one.open = false;
    });
})();
