// Renders the reference in the colours that the reader prefers.
const themes = { light: {
  ground: "#fffefb", side: "#f5f2ea", ink: "#1c2622", faint: "#56615b", rule: "#d8d3c6", accent: "#0d6450",
  code: "#7c2d12", codeGround: "#f5f2ea", panel: "#1c2622", bad: "#b3261e",
}, dark: {
  ground: "#19201d", side: "#0f1412", ink: "#e9ece8", faint: "#a5b0aa", rule: "#35403b", accent: "#74d4b4",
  code: "#f3cb86", codeGround: "#212a26", panel: "#0f1412", bad: "#ff9a8f",
} };
const bar = document.querySelector(".bar");
const preference = matchMedia("(prefers-color-scheme: dark)");

function render() {
  const theme = preference.matches ? "dark" : "light", c = themes[theme], reference = document.getElementById("reference");
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  Redoc.init("/docs/reference.yaml", {
    downloadUrls: [{ title: "openapi.yaml", url: "/openapi.yaml" }, { title: "openapi.json", url: "/openapi.json" }],
    expandResponses: "200,201,202",
    hideHostname: true,
    nativeScrollbars: true,
    schemasExpansionLevel: 1,
    scrollYOffset: () => getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0,
    theme: {
      colors: {
        primary: { main: c.accent, light: c.accent },
        text: { primary: c.ink, secondary: c.faint },
        responses: { success: { color: c.accent }, error: { color: c.bad } },
        border: { dark: c.rule, light: c.rule },
        gray: { 50: c.side, 100: c.side },
        http: { get: "#1f7a5c", post: "#2b5fb0", put: "#8a5a00", patch: "#8a5a00", delete: "#b3362b" },
      },
      schema: { nestedBackground: c.side, linesColor: c.rule, typeNameColor: c.faint, typeTitleColor: c.faint, requireLabelColor: c.bad },
      typography: {
        fontFamily: font, fontSize: "16px", lineHeight: "1.55",
        headings: { fontFamily: font, fontWeight: "600" },
        code: { color: c.code, backgroundColor: c.codeGround, fontSize: "0.86em" },
        links: { color: c.accent },
      },
      sidebar: { backgroundColor: c.side, textColor: c.ink, width: "270px" },
      rightPanel: { backgroundColor: c.panel },
    },
  }, reference, () => { reference.dataset.theme = theme; });
}

// Redoc's headings skip levels, and its code cannot be scrolled by keys.
function complete() {
  for (const heading of document.querySelectorAll("#reference h5:not([aria-level])")) heading.ariaLevel = "3";
  for (const code of document.querySelectorAll("#reference pre:not([tabindex])")) code.tabIndex = 0;
}
new MutationObserver(complete).observe(document.getElementById("reference"), { childList: true, subtree: true });

preference.addEventListener("change", render);
render();
