/** Dead links of the pages that were built. */
import { posix } from "node:path"

const decoded = (text) => decodeURIComponent(text.replaceAll("&amp;", "&"))

const idsOf = (html) => new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id))

/**
 * The links of pages that lead to no file, or to no heading of a page. `pages` has the HTML of each page by its path, `files`
 * every path of the site; `base` is the path under which the site is served.
 */
export const deadLinks = (pages, files, base = "/") => {
  const ids = new Map([...pages].map(([page, html]) => [page, idsOf(html)]))
  const isDead = (page, href) => {
    const [, path, anchor] = /^([^?#]*)[^#]*#?(.*)$/.exec(href)
    if (path.startsWith("/") && !path.startsWith(base)) return true
    const absolute = path.startsWith("/") ? path.slice(base.length) : posix.join(posix.dirname(page), path)
    const target = path === "" ? page : absolute.replace(/(^|\/)\.?$/, "$1index.html")
    if (!files.has(target)) return true
    return anchor !== "" && ids.has(target) && !ids.get(target).has(anchor)
  }
  return [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/<(?:a|img|link)\s[^>]*?(?:href|src)="([^"]*)"/g)]
      .map(([, href]) => decoded(href))
      .filter((href) => !/^([a-z][a-z+.-]*:|\/\/)/i.test(href) && isDead(page, href))
      .map((href) => `${page}: ${href} leads nowhere`)
  )
}
