/** The frame of every page. */
import type { Assets } from "../assets.ts"
import { html, Html } from "../html.ts"
import type { Page, Visit } from "../visit.ts"

const logo = html`<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
  <path d="M3 6.5h8.2a3.3 3.3 0 0 1 0 6.6H6" fill="none" stroke="currentColor" stroke-width="1.7" />
  <path d="M8.4 10.4 5.6 13.1l2.8 2.7" fill="none" stroke="currentColor" stroke-width="1.7" />
</svg>`

/** Not in a template: bundlers compile templates with this text to a call of a helper package. */
const scriptEnd = new Html("</script>")

/** The strongest action that is granted. */
const roleOf = ({ may }: Visit): string => [...may].at(-1) ?? "nothing"

const link = (href: string, text: string, isCurrent: boolean): Html =>
  isCurrent ? html`<a href="${href}" aria-current="page">${text}</a>` : html`<a href="${href}">${text}</a>`

/** A whole page. */
export const layout = (visit: Visit, { body, isLive, title }: Page, { icon, script, style }: Assets) => {
  const { now, operator, paths } = visit
  return html`<!doctype html>
    <html lang="en" data-now="${now}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Requeue</title>
        <link rel="stylesheet" href="${paths.asset(style.name)}" />
        <link rel="icon" href="${paths.asset(icon.name)}" />
        <script src="${paths.asset(script.name)}" defer>${scriptEnd}
        ${isLive === true && html`<noscript><meta http-equiv="refresh" content="1" /></noscript>`}
      </head>
      <body>
        <header>
          <a class="name" href="${paths.to("overview")}">${logo}Requeue</a>
          <nav aria-label="Sections">
            ${link(paths.to("overview"), "Queues", title === "Queues")}${link(
              paths.to("events"),
              "Events",
              title === "Events"
            )}${link(paths.to("jobs"), "Jobs", title === "Jobs")}
          </nav>
          ${operator !== "" && html`<span class="who">${operator} <span class="soft">${roleOf(visit)}</span></span>`}
        </header>
        <main>${body}</main>
      </body>
    </html> `
}
