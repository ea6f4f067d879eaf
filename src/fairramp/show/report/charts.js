// Draws charts; the tables of a chart are parameters, which can change without drawing it again.
const { openCharts } = (() => {
  const options = {
    ast: true,
    actions: false,
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  const PAPER = 680;
  const frame = (name) => document.getElementById(`chart-${name}`);

  // Rows of groups are taller on a narrow page, where names stand above the rates.
  function height(spec, width) {
    const { wide, heights } = spec.usermeta ?? {};
    return heights ? heights[width >= wide ? 0 : 1] : spec.height;
  }

  async function draw(name, spec) {
    const place = frame(name);
    spec.height = height(spec, place.clientWidth);
    const { view } = await vegaEmbed(place, spec, options);
    return [name, view];
  }

  // `changed` is called after charts were drawn again, because the window has another width.
  function openCharts(specs, changed) {
    let views = new Map();
    let width = window.innerWidth;
    let timer;

    async function drawAll() {
      const made = await Promise.all(Object.entries(specs).map(([name, spec]) => draw(name, spec)));
      for (const view of views.values()) view.finalize();
      views = new Map(made);
      changed();
    }

    function fit(widthOf) {
      for (const [name, view] of views) {
        const width = widthOf(frame(name));
        view.width(width).height(height(specs[name], width)).run();
      }
    }

    function resized() {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (window.innerWidth === width) return;
        width = window.innerWidth;
        drawAll();
      }, 150);
    }

    // Paper has another width than the screen: without this, charts would be printed too small to read.
    const listeners = {
      resize: resized,
      beforeprint: () => fit(() => PAPER),
      afterprint: () => fit((place) => place.clientWidth),
    };
    for (const [name, listener] of Object.entries(listeners)) window.addEventListener(name, listener);
    return {
      ready: drawAll(),
      set(name, values) {
        const view = views.get(name);
        if (!view) return;
        for (const [signal, value] of Object.entries(values)) view.signal(signal, value);
        view.runAsync();
      },
      close() {
        clearTimeout(timer);
        for (const [name, listener] of Object.entries(listeners)) window.removeEventListener(name, listener);
        for (const view of views.values()) view.finalize();
      },
    };
  }

  return { openCharts };
})();
