// Pages are whole without this. It shows what changes without loading the page again, and keeps forms from going twice.
const replace = (next) => {
  const old = document.getElementById(next.id)
  if (old === null || old.isEqualNode(next)) return
  const { activeElement } = document
  const held = old.contains(activeElement) ? activeElement.getAttribute("href") : null
  old.replaceWith(next)
  if (held !== null)
    [...next.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus({ preventScroll: true })
}

const follow = (part) => {
  let isOver = false
  let events
  const open = () => {
    events = new EventSource(part.dataset.live)
    events.addEventListener("update", ({ data }) => {
      const held = part.contains(document.activeElement)
      part.innerHTML = data // The server has escaped all that is not its own.
      if (held) part.querySelector("button, a")?.focus({ preventScroll: true })
    })
    events.addEventListener("parts", ({ data }) => {
      const all = document.createElement("template")
      all.innerHTML = data // The same.
      for (const next of all.content.querySelectorAll("[id]")) replace(next)
    })
    events.addEventListener("over", () => {
      isOver = true
      events.close()
      // What can be done now stands outside of the part as well.
      if (part.dataset.reload !== undefined) location.reload()
    })
  }
  // Browsers have six connections to a server, and nobody sees a page that is hidden.
  const turn = () => {
    events?.close()
    if (!document.hidden && !isOver) open()
  }
  document.addEventListener("visibilitychange", turn)
  turn()
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
