// Pages are whole without this. It shows what changes without loading the page again, and keeps forms from going twice.
const follow = (part) => {
  const events = new EventSource(part.dataset.live)
  events.addEventListener("update", ({ data }) => {
    const held = part.contains(document.activeElement)
    part.innerHTML = data // The server has escaped all that is not its own.
    if (held) part.querySelector("button, a")?.focus({ preventScroll: true })
  })
  events.addEventListener("over", () => {
    events.close()
    // What can be done now stands outside of the part as well.
    if (part.dataset.reload !== undefined) location.reload()
  })
}

for (const part of document.querySelectorAll("[data-live]")) follow(part)

addEventListener("submit", ({ target }) => {
  // A file comes, and the page stays.
  for (const button of target.querySelectorAll("button:not([data-again])")) button.disabled = true
})
// A page that the browser kept is as it was before the form went.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload()
})
