/** Links of the Markdown files, as the site needs them. */
import { existsSync, statSync } from "node:fs"
import { join, posix, relative } from "node:path"
import { root } from "../../../scripts/workspace.mjs"
import { toRoute } from "./pages.mjs"

const isElsewhere = (href) => /^([a-z][a-z+.-]*:|\/\/|#)/i.test(href)

/**
 * Where a link of a page leads: `href` is its address on the site, `file` a file or folder of the repository that is no page.
 * Neither, if the link leads out of the repository or nowhere.
 */
export const resolve = (href, page, { pages, exists }) => {
  if (isElsewhere(href)) return {}
  const [, path, hash] = /^([^#]*)(.*)$/.exec(href)
  const target = posix.join(posix.dirname(page), decodeURI(path)).replace(/\/$/, "")
  const found = [target, posix.join(target, "README.md")].find((file) => pages.includes(file))
  if (found !== undefined) return { href: `/${toRoute(found)}${hash}` }
  return exists(target) ? { file: target } : {}
}

const setLink = (open, close, { href, file }, address) => {
  if (href !== undefined) return open.attrSet("href", href)
  if (file === undefined) return undefined
  if (address !== undefined) {
    const kind = statSync(join(root, file)).isDirectory() ? "tree" : "blob"
    return open.attrSet("href", `${address}/${kind}/main/${file}`)
  }
  // Without the address of the repository there is nothing to link to: the text stays, and its tooltip names the file.
  open.tag = "span"
  close.tag = "span"
  open.attrs = [
    ["class", "source"],
    ["title", `${file} in the repository`]
  ]
  return undefined
}

/** A markdown-it plugin that resolves the links of each page; `address` is that of the repository, if it has one. */
export const links = (md, { address, pages }) => {
  const places = { pages, exists: (file) => existsSync(join(root, file)) }
  md.core.ruler.push("repository-links", ({ env, tokens }) => {
    const page = relative(root, env.realPath ?? env.path).replaceAll("\\", "/")
    for (const { children } of tokens) {
      let open
      for (const token of children ?? []) {
        if (token.type === "link_open") open = token
        if (token.type === "link_close") setLink(open, token, resolve(open.attrGet("href"), page, places), address)
      }
    }
  })
}
