const root = document.documentElement;
const button = document.getElementById("theme");
const dark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const show = () => {
  button.textContent = dark() ? "Light theme" : "Dark theme";
};
try {
  const saved = localStorage.getItem("fullmatch-theme");
  if (saved === "dark" || saved === "light") root.dataset.theme = saved;
} catch {} // a browser may refuse storage to pages opened from a file
button.addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("fullmatch-theme", root.dataset.theme);
  } catch {}
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
show();
button.hidden = false;
