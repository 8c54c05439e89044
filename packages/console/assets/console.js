// Pages work without this script. It updates live parts without a reload, and keeps forms from being sent twice.
const replace = (next) => {
  const old = document.getElementById(next.id)
  if (old === null || old.isEqualNode(next)) return
  const { activeElement } = document
  const held = old.contains(activeElement) ? activeElement.getAttribute("href") : null
  old.replaceWith(next)
  if (held !== null)
    [...next.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus({ preventScroll: true })
}

let isLeft = false
addEventListener("click", ({ target }) => (isLeft ||= target.closest("a[href]") !== null))

const follow = (part) => {
  let isOver = false
  let events
  const open = () => {
    events = new EventSource(part.dataset.live)
    events.addEventListener("update", ({ data }) => {
      const held = part.contains(document.activeElement)
      part.innerHTML = data // The server has escaped it.
      if (held) part.querySelector("button, a")?.focus({ preventScroll: true })
    })
    events.addEventListener("parts", ({ data }) => {
      const all = document.createElement("template")
      all.innerHTML = data // The server has escaped it.
      for (const next of all.content.querySelectorAll("[id]")) replace(next)
    })
    events.addEventListener("over", () => {
      isOver = true
      events.close()
      // Actions outside of the part change as well. A reload would delay a navigation that has begun.
      if (part.dataset.reload !== undefined) setTimeout(() => location.reload(), isLeft ? 10_000 : 0)
    })
  }
  // Browsers allow six connections to a server: hidden pages close theirs.
  const turn = () => {
    events?.close()
    if (!document.hidden && !isOver) open()
  }
  document.addEventListener("visibilitychange", turn)
  turn()
}

for (const part of document.querySelectorAll("[data-live]")) follow(part)

// Ages grow while a page is open, by the server's clock. Screen readers do not announce them.
const ahead = Date.now() - Number(document.documentElement.dataset.now)
const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }
const age = (millis) => {
  const names = Object.keys(units)
  const first = names.findIndex((name) => millis >= units[name])
  if (first < 0) return "now"
  const [one, other] = names.slice(first, first + 2)
  const rest = other === undefined ? 0 : Math.floor((millis % units[one]) / units[other])
  return `${Math.floor(millis / units[one])}${one}${rest > 0 ? ` ${rest}${other}` : ""} ago`
}
setInterval(() => {
  for (const time of document.querySelectorAll("time.ago")) {
    time.ariaLive = "off"
    time.textContent = age(Date.now() - ahead - Date.parse(time.dateTime))
  }
}, 1000)

addEventListener("submit", ({ target }) => {
  // A button with data-again downloads a file, and the page stays.
  for (const button of target.querySelectorAll("button:not([data-again])")) button.disabled = true
})
// A page from the browser's cache is older than the sent form.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload()
})
